#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares bottleneck blocks of ResNet-50, each compiled as one function, with PyTorch.

usage: bottleneck.py make FOLDER [--tool FILE]
       bottleneck.py measure FOLDER --out RESULT.json

`make` compiles the first blocks of the four stages, f16, batch 64 as the last
dimension: three convolutions with folded batch norms and ReLUs, and a shortcut, at
75 and 90 % in panels of 64 outputs. `measure` compares the result with the same
block in float32, and times it in turns with PyTorch in f16, whose images are NHWC.
"""

import argparse
import json
import lzma
import math
import pathlib
import statistics
import subprocess
import sys
from types import SimpleNamespace

import cusparselt
from convolution_layers import ENCODINGS
from driver import Driver

BATCH = 64
# (channels, height, narrow channels, outputs, stride)
BLOCKS = [
    (64, 56, 64, 256, 1),
    (256, 56, 128, 512, 2),
    (512, 28, 256, 1024, 2),
    (1024, 14, 512, 2048, 2),
]
MAPS = """#id = affine_map<(f, p, q, b) -> (f, p, q, b)>
#bias = affine_map<(f, p, q, b) -> (f)>
#w = affine_map<(f, p, q, b, c, r, s) -> (f, c, r, s)>
#y = affine_map<(f, p, q, b, c, r, s) -> (f, p, q, b)>
"""


def image(channels, size, element="f16"):
    return f"tensor<{channels}x{size}x{size}x{BATCH}x{element}>"


def convolve(name, x, x_type, weight, weight_type, y_type, stride):
    place = f"p * {stride} + r, q * {stride} + s"
    loops = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    return (
        f"  %{name}e = tensor.empty() : {y_type}\n"
        f"  %{name}i = linalg.fill ins(%zero : f32) outs(%{name}e : {y_type})"
        f" -> {y_type}\n"
        f"  %{name} = linalg.generic {{indexing_maps = [affine_map<"
        f"(f, p, q, b, c, r, s) -> (c, {place}, b)>, #w, #y],\n"
        f"      iterator_types = [{loops}]}}\n"
        f"      ins({x}, {weight} : {x_type}, {weight_type})"
        f" outs(%{name}i : {y_type}) {{\n"
        "  ^bb0(%xi: f16, %wi: f16, %yi: f32):\n"
        "    %xe = arith.extf %xi : f16 to f32\n"
        "    %we = arith.extf %wi : f16 to f32\n"
        "    %m = arith.mulf %xe, %we : f32\n"
        "    %s = arith.addf %yi, %m : f32\n"
        f"    linalg.yield %s : f32\n  }} -> {y_type}\n"
    )


def finish(name, y, y_type, bias, outputs, result, other="", relu=True):
    inputs, types, maps = (
        f"{y}, {bias}",
        f"{y_type}, tensor<{outputs}xf32>",
        "#id, #bias",
    )
    block, body, last = "%a: f32, %c: f32", "    %t0 = arith.addf %a, %c : f32\n", "%t0"
    if other:
        inputs, types, maps = f"{inputs}, {other}", f"{types}, {result}", f"{maps}, #id"
        block += ", %r: f16"
        body += "    %rw = arith.extf %r : f16 to f32\n"
        body += "    %t1 = arith.addf %t0, %rw : f32\n"
        last = "%t1"
    if relu:
        body += f"    %t2 = arith.maximumf {last}, %zero : f32\n"
        last = "%t2"
    loops = ", ".join(['"parallel"'] * 4)
    return (
        f"  %{name}e = tensor.empty() : {result}\n"
        f"  %{name} = linalg.generic {{indexing_maps = [{maps}, #id],\n"
        f"      iterator_types = [{loops}]}}\n"
        f"      ins({inputs} : {types}) outs(%{name}e : {result}) {{\n"
        f"  ^bb0({block}, %o: f16):\n{body}"
        f"    %t3 = arith.truncf {last} : f32 to f16\n"
        f"    linalg.yield %t3 : f16\n  }} -> {result}\n"
    )


def shapes(block):
    """Weights, in the order of the function's arguments."""
    channels, _, narrow, outputs, _ = block
    return [
        (narrow, channels, 1, 1),
        (narrow, narrow, 3, 3),
        (outputs, narrow, 1, 1),
        (outputs, channels, 1, 1),
    ]


def text(block, encoding):
    channels, size, narrow, outputs, stride = block
    half = size // stride
    x, inner, around = image(channels, size), image(narrow, size), size + 2
    small, result = image(narrow, half), image(outputs, half)
    weights = [
        f"tensor<{'x'.join(map(str, shape))}xf16, #p>" for shape in shapes(block)
    ]
    arguments = "".join(
        f", %w{i}: {w}, %b{i}: tensor<{shape[0]}xf32>"
        for i, (w, shape) in enumerate(zip(weights, shapes(block)))
    )
    sums = [image(n, s, "f32") for n, s in ((narrow, size), (narrow, half))]
    last = image(outputs, half, "f32")
    return (
        MAPS + f"#p = #nm_sparse.encoding<{encoding}, dim = 1>\n"
        f"func.func @block(%x: {x}{arguments}) -> {result} {{\n"
        "  %zero = arith.constant 0.0 : f32\n  %none = arith.constant 0.0 : f16\n"
        + convolve("c0", "%x", x, "%w0", weights[0], sums[0], 1)
        + finish("a0", "%c0", sums[0], "%b0", narrow, inner)
        + "  %around = tensor.pad %a0 low[0, 1, 1, 0] high[0, 1, 1, 0] {\n"
        "  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):\n"
        f"    tensor.yield %none : f16\n  }} : {inner} to {image(narrow, around)}\n"
        + convolve(
            "c1", "%around", image(narrow, around), "%w1", weights[1], sums[1], stride
        )
        + finish("a1", "%c1", sums[1], "%b1", narrow, small)
        + convolve("c3", "%x", x, "%w3", weights[3], last, stride)
        + finish("a3", "%c3", last, "%b3", outputs, result, relu=False)
        + convolve("c2", "%a1", small, "%w2", weights[2], last, 1)
        + finish("a2", "%c2", last, "%b2", outputs, result, other="%a3")
        + f"  return %a2 : {result}\n}}\n"
    )


def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for number, block in enumerate(BLOCKS):
        for density, encoding in ENCODINGS.items():
            path = arguments.folder / f"block{number}-{density}.json"
            source, manifest = path.with_suffix(".mlir"), path.with_suffix(".manifest")
            cubin = path.with_suffix(".cubin")
            source.write_text(text(block, encoding))
            command = [arguments.tool, str(source), "-o", str(cubin), "--emit", "cubin"]
            command += ["--manifest", str(manifest)]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            image_path = path.with_suffix(".xz")
            image_path.write_bytes(lzma.compress(cubin.read_bytes(), preset=1))
            (function,) = json.loads(manifest.read_text())["functions"]
            about = {"block": block, "density": density, "function": function}
            path.write_text(json.dumps(about))
            for done in (source, manifest, cubin):
                done.unlink()


class Block:
    """Random operands, packed and dense."""

    def __init__(self, torch, block, density):
        import numpy

        import nm_sparse

        self.torch, (self.channels, self.size, _, _, self.stride) = torch, block
        torch.manual_seed(1)
        kept, window = ((8, 32), (4, 40))[density == "90"]
        encoding = nm_sparse.Encoding(kept, window, (1, 64), 1)
        generator = numpy.random.default_rng(1)
        self.packed, self.weights, self.biases = [], [], []
        for shape in shapes(block):
            rows = math.prod(shape[1:])
            weight = generator.standard_normal((shape[0], rows), numpy.float32)
            weight *= 1 / math.sqrt(rows * kept / window)
            weight = nm_sparse.prune(weight.astype(numpy.float16), encoding)
            parts = nm_sparse.encode(weight, encoding).components
            self.biases.append(torch.randn(shape[0], device="cuda"))
            self.packed += [torch.from_numpy(part).cuda() for part in parts.values()]
            self.packed.append(self.biases[-1])
            self.weights.append(torch.from_numpy(weight).cuda().reshape(shape))
        self.x = torch.randn(
            (self.channels, self.size, self.size, BATCH), device="cuda"
        ).half()

    def run(self, image, weights, biases):
        conv = self.torch.nn.functional.conv2d
        relu = self.torch.relu
        y = relu(conv(image, weights[0], biases[0]))
        y = relu(conv(y, weights[1], biases[1], stride=self.stride, padding=1))
        short = conv(image, weights[3], biases[3], stride=self.stride)
        return relu(conv(y, weights[2], biases[2]) + short)


def measure_block(torch, driver, folder, path):
    from pairs import Program

    about = json.loads(path.read_text())
    function = about["function"]
    block = Block(torch, about["block"], about["density"])
    module = driver.load(lzma.decompress(path.with_suffix(".xz").read_bytes()))
    kernels = {
        launch["kernel"]: driver.kernel(module, launch["kernel"])
        for launch in function["launches"]
    }
    given = SimpleNamespace(tensors=[block.x, *block.packed])
    program = Program(torch, driver, kernels, function, given)
    (about_result,) = function["results"]
    own = (
        program.result()
        .reshape(-1)
        .as_strided(*(list(map(int, about_result[f])) for f in ("sizes", "strides")))
    )
    images = block.x.permute(3, 0, 1, 2)
    want = block.run(
        images.float().contiguous(), [w.float() for w in block.weights], block.biases
    )
    got = own.permute(3, 0, 1, 2).float()
    error = ((got - want).norm() / want.norm()).item()
    form = torch.channels_last
    dense_x = images.contiguous(memory_format=form)
    dense_w = [w.contiguous(memory_format=form) for w in block.weights]
    dense_b = [b.half() for b in block.biases]
    for _ in range(3):
        block.run(dense_x, dense_w, dense_b)
    torch.cuda.synchronize()
    works = {
        "own": [program.enqueue],
        "dense": [lambda: block.run(dense_x, dense_w, dense_b)],
    }
    graphs = {name: cusparselt.capture(torch, work, 10) for name, work in works.items()}
    taken = cusparselt.take_turns(torch, graphs, 30, warmup=5)
    times = {f"{name}_us": statistics.median(taken[name]) / 10 for name in works}
    driver.unload(module)
    return {
        "block": about["block"],
        "density": about["density"],
        "kernels": len(function["launches"]),
        "relative_error": error,
        **times,
    }


def measure(arguments):
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    driver, blocks = Driver(), []
    for path in sorted(arguments.folder.glob("*.json")):
        blocks.append(measure_block(torch, driver, arguments.folder, path))
        print(json.dumps(blocks[-1]), flush=True)
    result = {"gpu": torch.cuda.get_device_name(), "blocks": blocks}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(any(not b["relative_error"] < 2e-3 for b in blocks))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--tool", default="nm-compile")
    command.set_defaults(run=make)
    command = commands.add_parser("measure")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.set_defaults(run=measure)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
