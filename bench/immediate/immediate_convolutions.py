#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures convolutions with constant weights in the code of kernels against cuDNN.

usage: immediate_convolutions.py make FOLDER [--tool nm-compile] [--jobs N]
       immediate_convolutions.py run FOLDER --out RESULT.json [--deadline SECONDS]
       immediate_convolutions.py report RESULT.json

`make` needs no GPU: it compiles the 3 x 3 layers of ResNet-50, with 90 and 95 % of
random zeros, f32, NCHW, batch 1 and 8, into cubins: with what the model chooses
(`chosen`), with other schedules of code for a fit of the model (`variant`), with the
weight as an operand of free elements (`dot`), and, of a weight as sparse in panels of
64 outputs, with the kernel that finds rows by an index (`panels`), whose images have
their batch last. `run` needs PyTorch and no build.

cuDNN convolves in f32 without TF32, `nchw` and `nhwc`; the faster counts. Each time is
that of a call in a CUDA graph, with the operands of all calls the same (`hot`), or
with sets of operands, and copies of the code, that together are larger than L2
(`cold`).
"""

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "convolutions"))
import kernel_images
from convolution_layers import ROOT
from immediate import chooses_code, time_works
from immediate_layers import make_weight

from convolutions_text import Convolution, text, text_with_constant  # isort: skip

# Channels, which are outputs, too; rows of the image; strides.
LAYERS = [(64, 56, 1), (128, 56, 2), (128, 28, 1), (256, 28, 2), (256, 14, 1)]
LAYERS += [(512, 14, 2), (512, 7, 1)]
PANELS = {0.1: "4:40, block = [1, 64]", 0.05: "2:40, block = [1, 64]"}
DIRECT = "{x = direct, values = direct, index = direct}"
MOST_CODE, WANTED_BYTES, MOST_SETS = 1 << 20, 128 << 20, 32


def all_layers():
    for channels, height, stride in LAYERS:
        for density in (0.1, 0.05):
            for batch in (1, 8):
                yield channels, height, stride, batch, density


def name_of(layer, label):
    channels, height, stride, batch, density = layer
    return f"{channels}x{height}s{stride}b{batch}-{round(100 * density)}-{label}"


def convolution(layer, label, schedule=""):
    channels, height, stride, batch, density = layer
    return Convolution(
        layout="chwb" if label == "panels" else "nchw_fchw",
        element="f32",
        encoding=PANELS[density] if label == "panels" else "free",
        batch=batch,
        channels=channels,
        height=height,
        width=height,
        outputs=channels,
        strides=(stride, stride),
        schedule=schedule,
    )


def make_kernel(layer):
    """The weight, outputs x channels x 3 x 3."""
    channels, density = layer[0], layer[4]
    weight = make_weight(channels, 9 * channels, density)
    return weight.T.reshape(channels, channels, 3, 3).copy()


def draw_variants(layer, count):
    """Schedules of code, always the same, unless there is much of it."""
    channels, density = layer[0], layer[4]
    if 16 * 9 * channels * channels * density > MOST_CODE:
        return []
    legal = [
        f"tile = [{32 * warps}, {outputs}, {-(-9 * channels // 256) * 256}], product = "
        f"immediate<warps = {warps * shares}, shares = {shares}>, "
        f"transfers = {DIRECT}, pipeline = sequential"
        for outputs in (32, 64, 128)
        for warps in (1, 2, 4, 8)
        for shares in (1, 2, 4, 8, 16)
        if outputs <= channels
        and warps * shares <= 16
        and (shares == 1 or 4 * shares * 32 * warps * outputs <= 200 << 10)
    ]
    return random.Random(str(layer)).sample(legal, min(count, len(legal)))


def compile_one(folder, tool, layer, label, schedule):
    path = folder / name_of(layer, label)
    if path.with_suffix(".json").exists():
        return
    conv = convolution(layer, label, schedule)
    is_constant = label not in ("dot", "panels")
    source = path.with_suffix(".mlir")
    source.write_text(
        text_with_constant(conv, make_kernel(layer)) if is_constant else text(conv)
    )
    percent = str(round(100 * layer[4]))
    about = {"layer": layer, "label": label}
    # What reads the weight is measured as `dot`: a manifest has no constants.
    if label != "chosen" or chooses_code(tool, source, percent):
        flags = ["--density", percent]
        flags += ["--specialize-constants"] if is_constant else []
        image = path.with_suffix(".xz")
        try:
            about |= kernel_images.compile_image(tool, source, image, flags)
        except kernel_images.CompilationError as error:
            if is_constant:
                raise
            # Copies of the host between a kernel and a transposition are in no
            # manifest.
            about["error"] = str(error)
    source.unlink()
    path.with_suffix(".json").write_text(json.dumps(about))


def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for layer in all_layers():
        jobs += [(layer, label, "") for label in ("chosen", "dot", "panels")]
        for i, schedule in enumerate(draw_variants(layer, arguments.variants)):
            jobs.append((layer, f"variant{i}", schedule))
    jobs.sort(key=lambda job: (job[1], job[0][0]))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(
            pool.map(lambda j: compile_one(arguments.folder, arguments.tool, *j), jobs)
        )


class Operands:
    """Images and weights of one layer, and what cuDNN makes of them."""

    def __init__(self, torch, layer, sets):
        self.torch, self.layer, self.sets = torch, layer, sets
        channels, height, self.stride, batch, _ = layer
        shape = (batch, channels, height, height)
        self.images = [torch.randn(shape, device="cuda") for _ in range(sets)]

    def convolve(self, image, weight):
        return self.torch.nn.functional.conv2d(
            image, weight, stride=self.stride, padding=1
        )

    def give(self, label):
        """(dense weight, what the kernel takes beside the image)"""
        if label not in ("dot", "panels"):
            return make_kernel(self.layer), []
        sys.path.insert(0, str(ROOT / "python"))
        import nm_sparse

        channels, density = self.layer[0], self.layer[4]
        weight = make_kernel(self.layer).reshape(channels, 9 * channels)
        if label == "dot":
            stored = nm_sparse.pack_free_bitmap(
                nm_sparse.Encoding.free(), weight.T.copy()
            )
            return weight, [stored[0], stored[1].view("int32")]
        kept = 4 if density == 0.1 else 2
        encoding = nm_sparse.Encoding(kept, 40, (1, 64), 1)
        dense = make_weight(channels, 9 * channels, 1.0).T.copy()
        weight = nm_sparse.prune(dense, encoding)
        return weight, list(nm_sparse.encode(weight, encoding).components.values())

    def dense(self):
        """{name: calls}"""
        calls = {}
        weight = self.torch.from_numpy(make_kernel(self.layer)).cuda()
        for name, form in (
            ("nchw", self.torch.contiguous_format),
            ("nhwc", self.torch.channels_last),
        ):
            own = [
                (i.contiguous(memory_format=form), weight.clone(memory_format=form))
                for i in self.images
            ]
            calls[name] = [lambda o=operands: self.convolve(*o) for operands in own]
        return calls


def load(torch, driver, path, about, operands, kept):
    """(calls, relative error) of a compiled layer, loaded for each set."""
    from pairs import Program

    (function,) = about["manifest"]["functions"]
    weight, packed = operands.give(about["label"])
    packed = [torch.from_numpy(part).cuda() for part in packed]
    is_last = about["label"] == "panels"
    programs = []
    for x in operands.images:
        module, kernels = kernel_images.load_kernels(
            driver, path.with_suffix(".xz"), function
        )
        kept.append(module)
        given = x.permute(1, 2, 3, 0).contiguous() if is_last else x
        given = SimpleNamespace(tensors=[given, *(part.clone() for part in packed)])
        programs.append(Program(torch, driver, kernels, function, given))
    programs[0].enqueue()
    torch.cuda.synchronize()
    (result,) = function["results"]
    got = programs[0].result().reshape(-1)
    got = got.as_strided(
        *(list(map(int, result[field])) for field in ("sizes", "strides"))
    )
    want = torch.from_numpy(weight).cuda().double()
    want = want.reshape(operands.layer[0], operands.layer[0], 3, 3)
    want = operands.convolve(operands.images[0].double(), want)
    got = got.permute(3, 0, 1, 2) if is_last else got
    error = ((got.reshape(want.shape).double() - want).norm() / want.norm()).item()
    return [program.enqueue for program in programs], error


def measure(torch, driver, layer, files, sets, budget_ms):
    operands, works, errors, kept = Operands(torch, layer, sets), {}, {}, []
    works.update(operands.dense())
    for path in files:
        about = json.loads(path.read_text())
        if "manifest" not in about:
            continue
        calls, error = load(torch, driver, path, about, operands, kept)
        errors[about["label"]] = error
        if error <= 1e-5:
            works[about["label"]] = calls
    times = time_works(torch, works, budget_ms)
    for module in kept:
        driver.unload(module)
    return {"times_us": times, "relative_error": errors}


def describe(about):
    if "manifest" not in about:
        return {"schedule": "none here", "error": about.get("error")}
    return kernel_images.describe_product(about)


def run(arguments):
    import clocks
    import torch
    from driver import Driver
    from run import save

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")
    driver, started, done = Driver(), time.time(), []
    with clocks.Watch() as watch:
        for layer in all_layers():
            files = sorted(arguments.folder.glob(name_of(layer, "*") + ".json"))
            if not files or time.time() - started > arguments.deadline:
                continue
            channels, height, stride, batch, _ = layer
            pixels = height * height * (1 + 1 / stride**2)
            bytes_ = 4 * channels * (batch * pixels + 9 * channels)
            sets = max(2, min(MOST_SETS, math.ceil(WANTED_BYTES / bytes_)))
            found = {"layer": layer, "sets": sets}
            try:
                for mode, count in (("hot", 1), ("cold", sets)):
                    found[mode] = measure(
                        torch, driver, layer, files, count, arguments.budget_ms
                    )
            except (RuntimeError, ValueError, KeyError) as error:
                found["error"] = f"{type(error).__name__}: {error}".split("\n")[0]
            about = [json.loads(path.read_text()) for path in files]
            found["kernels"] = {a["label"]: describe(a) for a in about}
            done.append(found)
            shown = {key: found.get(key) for key in ("layer", "hot", "error")}
            print(json.dumps(shown), flush=True)
            torch.cuda.empty_cache()
    header = {
        "command": "bench/immediate/immediate_convolutions.py run",
        "gpu": torch.cuda.get_device_name(),
        "cudnn": torch.backends.cudnn.version(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started),
        "clocks": watch.range(),
    }
    save(arguments.out, header, done, "layers")


def is_code(entry, label):
    return "immediate<" in entry["kernels"][label]["schedule"]


def report(arguments):
    layers = json.loads(arguments.result.read_text())["layers"]
    mean = statistics.geometric_mean
    for mode in ("hot", "cold"):
        for density in (0.1, 0.05):
            for batch in (1, 8):
                own = [
                    e
                    for e in layers
                    if e["layer"][3:] == [batch, density] and mode in e
                ]
                times = [e[mode]["times_us"] for e in own]
                times = [t for t in times if "chosen" in t or "dot" in t]
                ours = [t.get("chosen", t.get("dot")) for t in times]
                dense = [min(t["nchw"], t["nhwc"]) / o for t, o in zip(times, ours)]
                panels = [t["panels"] / o for t, o in zip(times, ours)]
                print(
                    f"{mode}, {100 - round(100 * density)} % zeros, batch {batch}: "
                    f"{len(own)} layers, {sum(is_code(e, 'chosen') for e in own)} in "
                    f"code: {mean(dense):.2f} times cuDNN ({min(dense):.2f} to "
                    f"{max(dense):.2f}), {mean(panels):.2f} times panels"
                )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("--tool", default="nm-compile")
    maker.add_argument("--jobs", type=int, default=os.cpu_count())
    maker.add_argument("--variants", type=int, default=2)
    runner = commands.add_parser("run")
    runner.add_argument("folder", type=pathlib.Path)
    runner.add_argument("--out", type=pathlib.Path, required=True)
    runner.add_argument("--deadline", type=int, default=330)
    runner.add_argument("--budget-ms", type=int, default=25)
    reporter = commands.add_parser("report")
    reporter.add_argument("result", type=pathlib.Path)
    arguments = parser.parse_args()
    {"make": make, "run": run, "report": report}[arguments.command](arguments)


if __name__ == "__main__":
    main()
