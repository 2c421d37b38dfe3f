#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures constant weights in the code of kernels against cuBLAS.

usage: immediate.py make FOLDER [--tool nm-compile] [--jobs N] [--variants N]
       immediate.py run FOLDER --out RESULT.json [--deadline SECONDS]
       immediate.py report RESULT.json

`make` needs no GPU: it compiles the 1x1 layers of MobileNet-V1 and ResNet-50, and
their classifiers, with 90 and 95 % of random zeros, f32, batch 1 and 8, into cubins:
with the schedule that the model chooses, with others for a fit of the model, and
with the weight as an operand (`dot`). `run` needs PyTorch and no build.

Activations are feature-major, K x pixels. cuBLAS multiplies them as `fm` (W' X), and
token-major ones as `nn` (X W) and `tn` (X with W stored N x K); the best counts. Each
time is that of a call in a CUDA graph, with the operands of all calls the same
(`hot`), or with sets of operands, and copies of the code, that together are larger
than L2 (`cold`). `empty` is a kernel that does nothing.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import kernel_images
import launches
from immediate_layers import (
    CLASSIFIERS,
    all_layers,
    choose_variants,
    make_weight,
    name_of,
    program,
    spell,
)

EMPTY = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry empty() { ret; }
"""


def chooses_code(tool, source, density):
    """Whether the model chooses that the weight is code."""
    command = [tool, str(source), "-o", "-", "--emit", "schedule"]
    command += ["--specialize-constants", "--density", density]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return "immediate<" in done.stdout


def compile_one(folder, tool, layer, label, schedule, constant):
    path = folder / name_of(layer, label)
    if path.with_suffix(".json").exists():
        return
    density = str(round(100 * layer[3]))
    source = path.with_suffix(".mlir")
    source.write_text(program(layer, schedule, constant))
    described = {"layer": layer, "label": label}
    # What reads the weight is measured as `dot`.
    if label != "chosen" or chooses_code(tool, source, density):
        flags = ["--density", density]
        flags += ["--specialize-constants"] if label == "chosen" else []
        image = path.with_suffix(".xz")
        described |= kernel_images.compile_image(tool, source, image, flags)
    source.unlink()
    path.with_suffix(".json").write_text(json.dumps(described))


def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for layer in all_layers():
        if "dot" in arguments.labels:
            jobs.append((layer, "dot", "", False))
        if "chosen" in arguments.labels:
            jobs.append((layer, "chosen", "", True))
        for i, variant in enumerate(choose_variants(layer, arguments.variants)):
            jobs.append((layer, f"variant{i}", spell(layer, variant), True))
    jobs.sort(key=lambda job: (job[1], job[0][0] * job[0][1] * job[0][3]))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(
            pool.map(lambda j: compile_one(arguments.folder, arguments.tool, *j), jobs)
        )


class Kernels:
    """A compiled layer, loaded once for each set of operands."""

    def __init__(self, torch, driver, path, sets):
        self.torch, self.driver = torch, driver
        self.about = json.loads(path.read_text())
        (self.function,) = self.about["manifest"]["functions"]
        image = path.with_suffix(".xz")
        self.loaded = [
            kernel_images.load_kernels(driver, image, self.function)
            for _ in range(sets)
        ]
        self.calls, self.results, self.kept = [], [], []

    def prepare(self, xs, packed):
        """`packed` are values and bits of the weight, where it is an operand."""
        for (_, kernels), x in zip(self.loaded, xs):
            memrefs, given = {}, [x, *packed]
            for argument, tensor in zip(self.function["arguments"], given):
                tensor = tensor.clone() if tensor is not x else tensor
                self.add(memrefs, argument, tensor)
            for buffer in self.function["buffers"]:
                sizes = [launches.evaluate(e, memrefs) for e in buffer["sizes"]]
                self.add(
                    memrefs, buffer, self.torch.full(sizes, math.nan, device="cuda")
                )
            (launch,) = self.function["launches"]
            kernel = kernels[launch["kernel"]]
            shape = launches.shape_of(launch, memrefs)
            kernel.allow(shape)
            values = launches.parameters(launch, memrefs, None)
            self.calls.append((kernel, shape, values))
            self.results.append(memrefs[self.function["buffers"][-1]["name"]].data)

    def add(self, memrefs, described, tensor):
        _, element = launches.parse_type(described["type"])
        self.kept.append(tensor)
        memrefs[described["name"]] = launches.Memref(
            element, tuple(tensor.shape), tensor.data_ptr(), tensor
        )

    def works(self):
        def work(call):
            kernel, shape, values = call
            stream = self.torch.cuda.current_stream().cuda_stream
            return kernel.launch(shape, values, stream)

        return [lambda call=call: work(call) for call in self.calls]

    def unload(self):
        for module, _ in self.loaded:
            self.driver.unload(module)


def make_cublas(torch, xs, weight, sets):
    """{name: [works of each set]}"""
    works = {"fm": [], "nn": [], "tn": []}
    for x in xs:
        w, rows = weight.clone(), x.t().contiguous()
        turned = weight.t().contiguous()
        y = torch.empty((turned.shape[0], x.shape[1]), device="cuda")
        z = torch.empty((x.shape[1], turned.shape[0]), device="cuda")
        works["fm"].append(lambda a=turned, b=x, c=y: torch.mm(a, b, out=c))
        works["nn"].append(lambda a=rows, b=w, c=z: torch.mm(a, b, out=c))
        works["tn"].append(lambda a=rows, b=turned, c=z: torch.mm(a, b.t(), out=c))
    return works


def time_works(torch, works, budget_ms):
    """Microseconds of one call: {name: median}, all in turns."""
    import cusparselt

    sets = len(next(iter(works.values())))
    for work in (w for each in works.values() for w in each):
        work()
    torch.cuda.synchronize()
    trial = {n: cusparselt.capture(torch, w, sets) for n, w in works.items()}
    taken = cusparselt.take_turns(torch, trial, 3, warmup=1)
    copies, graphs = {}, {}
    for name, work in works.items():
        one = min(taken[name]) / sets
        copies[name] = sets * max(1, round(200 / max(sets * one, 1)))
        graphs[name] = cusparselt.capture(torch, work, copies[name])
    round_us = sum(min(taken[n]) / sets * copies[n] for n in works)
    rounds = max(7, min(60, int(1000 * budget_ms / round_us)))
    taken = cusparselt.take_turns(torch, graphs, rounds, warmup=3)
    return {n: round(statistics.median(taken[n]) / copies[n], 3) for n in works}


def measure(torch, driver, layer, files, sets, budget_ms):
    outputs, rows, pixels, density = layer
    weight = torch.from_numpy(make_weight(outputs, rows, density)).cuda()
    xs = [torch.randn((rows, pixels), device="cuda") for _ in range(sets)]
    want = weight.double().t() @ xs[0].double()
    works, errors, loaded = make_cublas(torch, xs, weight, sets), {}, []
    if sets == 1:
        module = driver.load(EMPTY)
        kernel = driver.kernel(module, "empty")
        shape = launches.Shape((1, 1, 1), (32, 1, 1), (1, 1, 1), 0)
        works["empty"] = [
            lambda: kernel.launch(shape, [], torch.cuda.current_stream().cuda_stream)
        ]
    for path in files:
        if not path.with_suffix(".xz").exists():
            continue
        kernels = Kernels(torch, driver, path, sets)
        label = kernels.about["label"]
        packed = []
        if len(kernels.function["arguments"]) > 1:
            stored = pack(outputs, rows, density)
            packed = [torch.from_numpy(stored[n]).cuda() for n in ("values", "bits")]
        kernels.prepare(xs, packed)
        own = kernels.works()
        own[0]()
        torch.cuda.synchronize()
        got = kernels.results[0][:outputs, :pixels].double()
        errors[label] = ((got - want).norm() / want.norm()).item()
        if errors[label] <= 1e-5:
            works[label] = own
        loaded.append(kernels)
    times = time_works(torch, works, budget_ms)
    for kernels in loaded:
        kernels.unload()
    return {"times_us": times, "relative_error": errors}


@functools.lru_cache(maxsize=4)
def pack(outputs, rows, density):
    """Values and bits, of the reference implementation."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    from nm_sparse import Encoding, pack_free_bitmap

    values, bits = pack_free_bitmap(
        Encoding.free(), make_weight(outputs, rows, density)
    )
    return {"values": values, "bits": bits.view("int32")}


def describe(about):
    if "manifest" not in about:
        return {"schedule": "that of dot"}
    return kernel_images.describe_product(about)


def run(arguments):
    import clocks
    import torch
    from driver import Driver
    from run import save

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")
    driver, started, done = Driver(), time.time(), []
    with clocks.Watch() as watch:
        for layer in all_layers():
            files = sorted(arguments.folder.glob(name_of(layer, "*") + ".json"))
            if not files or time.time() - started > arguments.deadline:
                continue
            found = {"layer": layer}
            bytes_ = 4 * (layer[0] * layer[1] + (layer[0] + layer[1]) * layer[2])
            sets = max(2, min(32, -(-(128 << 20) // bytes_)))
            try:
                for mode, count in (("hot", 1), ("cold", sets)):
                    found[mode] = measure(
                        torch, driver, layer, files, count, arguments.budget_ms
                    )
            except (RuntimeError, ValueError, KeyError) as error:
                found["error"] = f"{type(error).__name__}: {error}".split("\n")[0]
            found["sets"] = sets
            found["kernels"] = {}
            for path in files:
                about = json.loads(path.read_text())
                found["kernels"][about["label"]] = describe(about)
            done.append(found)
            print(
                json.dumps({k: found.get(k) for k in ("layer", "hot", "error")}),
                flush=True,
            )
            torch.cuda.empty_cache()
    header = {
        "command": "bench/immediate/immediate.py run",
        "gpu": torch.cuda.get_device_name(),
        "cublas": torch.version.cuda,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started),
        "clocks": watch.range(),
    }
    save(arguments.out, header, done, "layers")


def summarize(layers, mode):
    """What the model chooses beside the best dense layout, and beside `dot`."""
    dense, ours, of_dot, right = [], [], [], 0
    for layer in layers:
        times = layer[mode]["times_us"]
        code = [t for n, t in times.items() if n.startswith(("chosen", "variant"))]
        dense.append(min(times[name] for name in ("fm", "nn", "tn")))
        ours.append(times.get("chosen", times["dot"]))
        if "chosen" in times:
            of_dot.append(times["dot"] / times["chosen"])
        right += ("chosen" in times) == (min(code, default=math.inf) < times["dot"])
    mean = statistics.geometric_mean
    speedups = [a / b for a, b in zip(dense, ours)]
    return (
        f"{len(layers)} layers, {len(of_dot)} in code: {mean(speedups):.2f} times "
        f"dense ({min(speedups):.2f} to {max(speedups):.2f}), "
        f"{sum(s < 1 for s in speedups)} slower than it; code is "
        f"{mean(of_dot) if of_dot else math.nan:.2f} times dot; "
        f"right for {right}"
    )


def report(arguments):
    layers = json.loads(arguments.result.read_text())["layers"]
    classifiers = [outputs for outputs, _, _ in CLASSIFIERS]
    for mode in ("hot", "cold"):
        for density in (0.1, 0.05):
            own = [e for e in layers if e["layer"][3] == density]
            convolutions = [e for e in own if e["layer"][0] not in classifiers]
            name = f"{mode}, {100 - round(100 * density)} % zeros"
            print(f"{name}, 1 x 1: {summarize(convolutions, mode)}")
            print(f"{name}, all: {summarize(own, mode)}")


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("--tool", default="nm-compile")
    maker.add_argument("--jobs", type=int, default=os.cpu_count())
    maker.add_argument("--labels", nargs="*", default=["dot", "chosen"])
    maker.add_argument("--variants", type=int, default=2)
    runner = commands.add_parser("run")
    runner.add_argument("folder", type=pathlib.Path)
    runner.add_argument("--out", type=pathlib.Path, required=True)
    runner.add_argument("--deadline", type=int, default=400)
    runner.add_argument("--budget-ms", type=int, default=40)
    reporter = commands.add_parser("report")
    reporter.add_argument("result", type=pathlib.Path)
    arguments = parser.parse_args(argv)
    {"make": make, "run": run, "report": report}[arguments.command](arguments)


if __name__ == "__main__":
    main()
