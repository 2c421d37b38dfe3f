#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares bottleneck blocks of ResNet-50, each compiled as one function, with PyTorch.

usage: bottleneck.py make FOLDER [--tool FILE] [--layout nhwc|nchw]
                          [--densities LIST]
       bottleneck.py measure FOLDER --out RESULT.json

`make` compiles the first blocks of the four stages, f16, batch 64 as the last
dimension or in a layout of programs: three convolutions with folded batch norms and
ReLUs, and a shortcut, at 75 and 90 % in panels of 64 outputs, or blocks of 16 channels
(--densities 75b,88b). `measure` compares the result with the same
block in float32, and times it in turns with PyTorch in f16, whose images are NHWC.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cusparselt
from convolution_layers import ENCODINGS, PATTERNS
from driver import Driver
from kernel_images import compile_image, load_kernels

from bottleneck_text import ORDERS, shapes, text  # isort: skip

BATCH = 64
# (channels, height, narrow channels, outputs, stride)
BLOCKS = [
    (64, 56, 64, 256, 1),
    (256, 56, 128, 512, 2),
    (512, 28, 256, 1024, 2),
    (1024, 14, 512, 2048, 2),
]


def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for number, block in enumerate(BLOCKS):
        for density in arguments.densities:
            encoding, layout = ENCODINGS[density], arguments.layout
            path = arguments.folder / f"block{number}-{density}.json"
            source = path.with_suffix(".mlir")
            source.write_text(text(block, encoding, layout, BATCH))
            compiled = compile_image(arguments.tool, source, path.with_suffix(".xz"))
            (function,) = compiled["manifest"]["functions"]
            about = {
                "block": block,
                "density": density,
                "layout": layout,
                "function": function,
            }
            path.write_text(json.dumps(about))
            source.unlink()


class Block:
    """Random operands, packed and dense."""

    def __init__(self, torch, block, density, layout):
        import numpy

        import nm_sparse

        self.torch, (channels, size, _, _, self.stride) = torch, block
        torch.manual_seed(1)
        kept, window, in_block = PATTERNS[density]
        order, weight_order = ORDERS[layout]
        dim = 1 if weight_order.startswith("f") else 0
        encoding = nm_sparse.Encoding(kept, window, (in_block, 64), dim)
        generator = numpy.random.default_rng(1)
        self.packed, self.weights, self.biases = [], [], []
        for shape in shapes(block):
            rows = math.prod(shape[1:])
            matrix = (shape[0], rows) if dim == 1 else (rows, shape[0])
            weight = generator.standard_normal(matrix, numpy.float32)
            weight *= 1 / math.sqrt(rows * kept / window)
            weight = nm_sparse.prune(weight.astype(numpy.float16), encoding)
            parts = nm_sparse.encode(weight, encoding).components
            self.biases.append(torch.randn(shape[0], device="cuda"))
            self.packed += [torch.from_numpy(part).cuda() for part in parts.values()]
            self.packed.append(self.biases[-1])
            sizes = dict(zip("fcrs", shape))
            weight = torch.from_numpy(weight).cuda()
            weight = weight.reshape([sizes[letter] for letter in weight_order])
            self.weights.append(
                weight.permute([weight_order.index(d) for d in "fcrs"]).contiguous()
            )
        sizes = {"b": BATCH, "c": channels, "h": size, "w": size}
        self.x = torch.randn([sizes[d] for d in order], device="cuda").half()
        self.to_nchw = [order.index(d) for d in "bchw"]

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
    block = Block(torch, about["block"], about["density"], about["layout"])
    module, kernels = load_kernels(driver, path.with_suffix(".xz"), function)
    given = SimpleNamespace(tensors=[block.x, *block.packed])
    program = Program(torch, driver, kernels, function, given)
    (about_result,) = function["results"]
    own = (
        program.result()
        .reshape(-1)
        .as_strided(*(list(map(int, about_result[f])) for f in ("sizes", "strides")))
    )
    images = block.x.permute(block.to_nchw)
    want = block.run(
        images.float().contiguous(), [w.float() for w in block.weights], block.biases
    )
    got = own.permute(block.to_nchw).float()
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
        "layout": about["layout"],
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
    command.add_argument("--layout", choices=ORDERS, default="chwb")
    command.add_argument(
        "--densities", type=lambda s: s.split(","), default=["75", "90"]
    )
    command.set_defaults(run=make)
    command = commands.add_parser("measure")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.set_defaults(run=measure)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
