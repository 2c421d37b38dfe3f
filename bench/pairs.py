#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the kernels of two builds in turns, in one process, on a GPU.

usage: pairs.py FOLDER --out RESULT.json [--only TEXT] [--budget-ms N]
                [--deadline SECONDS]

FOLDER is what `scripts/compare_ptx.py --kernels FOLDER` made: images and launches
of both builds. Neither a build nor LLVM is needed here, but PyTorch, for memory
and the float64 product that each result is compared with.

For each layer both sides get the same random inputs, several sets of them, so
that operands come from device memory. A sample is a replay of a CUDA graph; the
two sides take turns, and the first of a round is the second of the next. `ratio`
is the median over the rounds of the time after by that before. Status 1 when a
result is wrong, a layer fails, or one takes longer than --limit allows. Layers
for chips other than this GPU's are left out, and those that --deadline cuts off.
"""

import argparse
import json
import lzma
import math
import pathlib
import shlex
import statistics
import sys
import time

import clocks
import cusparselt
import inputs
import launches
from driver import Driver
from layers import parse
from run import save

SIDES = ("before", "after")
# Largest relative Frobenius error, as nm-run has it.
TOLERANCES = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
WANTED_BYTES, MOST_SETS = 160 << 20, 64  # as nm-run
REPLAY_US = 300


def read(folder):
    """What compare_ptx.py wrote: header and pairs."""
    return json.loads(lzma.decompress((folder / "list.json.xz").read_bytes()))


def count_sets(layer):
    m, n, k = layer.shape
    size = launches.BYTES[layer.type] * (m * k + k * n + m * n)
    return max(1, min(MOST_SETS, -(-WANTED_BYTES // size)))


def count_copies(sets, microseconds):
    """Calls in a graph: enough for a replay that can be timed, all sets alike."""
    return sets * max(1, round(REPLAY_US / max(sets * microseconds, 1)))


def count_rounds(budget_ms, round_us):
    return max(9, min(200, int(1000 * budget_ms / max(round_us, 1))))


def compare_times(samples):
    """Medians, and that of the ratios of each round with its likely error: half
    the range that holds the true median with 95 %, were rounds independent."""
    ratios = sorted(a / b for b, a in zip(*(samples[side] for side in SIDES)))
    count = len(ratios)
    reach = 0.98 * math.sqrt(count)
    low = ratios[max(0, math.floor(count / 2 - reach))]
    high = ratios[min(count - 1, math.ceil(count / 2 + reach))]
    return {
        **{f"{side}_us": statistics.median(samples[side]) for side in SIDES},
        "ratio": statistics.median(ratios),
        "ratio_error": (high - low) / 2,
        "rounds": count,
    }


class Program:
    """The launches of one side on one set of inputs, with buffers of its own."""

    def __init__(self, torch, driver, kernels, function, given):
        self.torch, self.driver, self.function = torch, driver, function
        self.memrefs, self.kept = {}, []
        # By position: two builds may give them different names.
        for argument, tensor in zip(function["arguments"], given.tensors):
            _, element = launches.parse_type(argument["type"])
            if argument["name"] == self.result_name():  # added to in place
                tensor = tensor.clone()
            self.add(argument["name"], element, tensor)
        for buffer in function["buffers"]:
            _, element = launches.parse_type(buffer["type"])
            sizes = [launches.evaluate(e, self.memrefs) for e in buffer["sizes"]]
            kind = inputs.element_type(torch, element)
            self.add(
                buffer["name"], element, torch.empty(sizes, dtype=kind, device="cuda")
            )
        self.calls = []
        for launch in function["launches"]:
            shape = launches.shape_of(launch, self.memrefs)
            if shape:
                kernel = kernels[launch["kernel"]]
                kernel.allow(shape)
                values = launches.parameters(launch, self.memrefs, self.tensor_map)
                self.calls.append((kernel, shape, values))

    def add(self, name, element, tensor):
        self.memrefs[name] = launches.Memref(
            element, tuple(tensor.shape), tensor.data_ptr(), tensor
        )

    def tensor_map(self, memref, parameter):
        """A copy on the device, which lives as long as this does."""
        made = self.driver.tensor_map(memref, parameter)
        copy = self.torch.frombuffer(bytearray(made), dtype=self.torch.uint8).cuda()
        self.kept.append(copy)
        return copy.data_ptr()

    def enqueue(self):
        stream = self.torch.cuda.current_stream().cuda_stream
        for buffer in self.function["buffers"]:
            if "initial" in buffer:
                of = self.memrefs[buffer["name"]]
                element = launches.BYTES[of.element]
                value = launches.evaluate(buffer["initial"], self.memrefs)
                bits = value % (1 << 8 * element)
                self.driver.clear(
                    of.address, element, of.bytes() // element, bits, stream
                )
        for kernel, shape, values in self.calls:
            kernel.launch(shape, values, stream)

    def result_name(self):
        (result,) = self.function["results"]
        return result["buffer"]

    def result(self):
        """The result of a first call, with NaN where nothing is written."""
        memory = self.memrefs[self.result_name()].data
        if all(a["name"] != self.result_name() for a in self.function["arguments"]):
            memory.fill_(math.nan)
        self.torch.cuda.synchronize()
        with self.torch.cuda.stream(self.torch.cuda.Stream()):
            self.enqueue()
        self.torch.cuda.synchronize()
        return memory.clone()


def check(torch, programs, given):
    """{side: relative error}, whether all are small enough, and bits equal."""
    want = given.reference()
    # A result of any number of tokens may have rows that end in padding.
    extents = tuple(map(slice, want.shape))
    results = {side: programs[side][0].result()[extents] for side in SIDES}
    errors = {
        side: ((result.double() - want).norm() / want.norm()).item()
        for side, result in results.items()
    }
    limit = TOLERANCES[given.layer.type]
    return {
        "relative_error": errors,
        "passed": all(error <= limit for error in errors.values()),
        "same_result": torch.equal(*results.values()),
    }


def sample(torch, programs, budget_ms):
    """{side: [microseconds of one call, of each round]}."""
    works = {s: [program.enqueue for program in programs[s]] for s in SIDES}
    sets = len(works[SIDES[0]])
    trial = {side: cusparselt.capture(torch, works[side], sets) for side in SIDES}
    timings = cusparselt.take_turns(torch, trial, 3, warmup=1)
    one = max(min(timings[side]) / sets for side in SIDES)
    copies = count_copies(sets, one)
    graphs = {side: cusparselt.capture(torch, works[side], copies) for side in SIDES}
    rounds = count_rounds(budget_ms, 2 * copies * one)
    timings = cusparselt.take_turns(torch, graphs, rounds, warmup=rounds // 3)
    return {side: [us / copies for us in timings[side]] for side in SIDES}


def measure(torch, driver, folder, pair, budget_ms):
    layer = parse(pair["layer"])
    modules, programs = [], {}
    first = pair["before"]["functions"][0]
    sets = [
        inputs.Inputs(torch, layer, first, seed) for seed in range(count_sets(layer))
    ]
    try:
        for side in SIDES:
            (function,) = pair[side]["functions"]
            image = lzma.decompress((folder / pair[side]["image"]).read_bytes())
            modules.append(driver.load(image))
            kernels = {
                launch["kernel"]: driver.kernel(modules[-1], launch["kernel"])
                for launch in function["launches"]
            }
            programs[side] = [
                Program(torch, driver, kernels, function, given) for given in sets
            ]
        found = check(torch, programs, sets[0])
        if found["passed"]:
            begin = time.time()
            found.update(compare_times(sample(torch, programs, budget_ms)))
            found["measured_at"] = [begin, time.time()]
        return {**found, "sets": len(sets)}
    finally:
        for module in modules:
            driver.unload(module)


def summary(pairs, limit):
    """Figures over all pairs."""
    ratios = [pair["ratio"] for pair in pairs if "ratio" in pair]
    if not ratios:
        return {"measured": 0}
    return {
        "measured": len(ratios),
        "wrong_or_failed": len(pairs) - len(ratios),
        "ratio_geomean": math.exp(statistics.fmean(map(math.log, ratios))),
        "ratio_max": max(ratios),
        "slower": sum(ratio > limit for ratio in ratios),
        "same_result": sum(bool(pair.get("same_result")) for pair in pairs),
    }


def arguments_of(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="layers or labels with this text")
    parser.add_argument("--budget-ms", type=int, default=50)
    parser.add_argument("--deadline", type=int, default=540, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=1.01, help="largest ratio")
    return parser.parse_args(argv)


def runs_on(chip, capability):
    """Whether code for `chip`, such as sm_90a, is for a GPU of this capability."""
    major, minor = capability
    return chip.rstrip("af") == f"sm_{major}{minor}"


def measure_all(arguments, chosen, watch):
    import torch

    torch.zeros(1, device="cuda")  # makes the context
    capability = torch.cuda.get_device_capability()
    driver, started, done = Driver(), time.time(), []
    for pair in chosen:
        if not runs_on(pair["chip"], capability):
            continue
        if time.time() - started > arguments.deadline:
            break
        known = {key: pair[key] for key in ("layer", "label", "equal") if key in pair}
        try:
            found = measure(torch, driver, arguments.folder, pair, arguments.budget_ms)
        except (RuntimeError, ValueError, KeyError) as error:
            found = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        if "measured_at" in found:
            found["clocks"] = watch.between(*found.pop("measured_at"))
        done.append({**known, **found})
        print(describe(done[-1]), flush=True)
        torch.cuda.empty_cache()
        # A kernel that fails leaves a context that nothing runs in.
        if "error" in found and "ILLEGAL" in found["error"].upper():
            break
    return done


def describe(found):
    name = f"{found['layer']} {found.get('label', '')}".strip()
    if "error" in found:
        return f"{name}: {found['error']}"
    if not found["passed"]:
        return f"{name}: wrong, {found['relative_error']}"
    return (
        f"{name:48} {found['before_us']:9.2f} -> {found['after_us']:9.2f} us, "
        f"{found['ratio']:.4f} +- {found['ratio_error']:.4f}"
    )


def main(argv=None):
    arguments = arguments_of(argv)
    header = read(arguments.folder)
    everything = header.pop("pairs")
    chosen = [
        p for p in everything if arguments.only in f"{p['layer']} {p.get('label', '')}"
    ]
    started = time.time()
    gpu = clocks.query(["name", "driver_version"])
    with clocks.Watch() as watch:
        pairs = measure_all(arguments, chosen, watch)
    total = {**summary(pairs, arguments.limit), "left_out": len(chosen) - len(pairs)}
    header = {
        **header,
        "command": "bench/pairs.py "
        + shlex.join(sys.argv[1:] if argv is None else argv),
        "gpu": gpu.get("name", "unknown"),
        "driver": gpu.get("driver_version", "unknown"),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started),
        "budget_ms": arguments.budget_ms,
        "clocks": watch.range(),
        "summary": total,
    }
    save(arguments.out, header, pairs, "pairs")
    print(json.dumps(total))
    good = total["measured"] == len(pairs) and not total.get("slower")
    return 0 if good and pairs else 1


if __name__ == "__main__":
    sys.exit(main())
