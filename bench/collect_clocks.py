#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records what layers take at other clocks: the sweep that nm-compile --recommend
reads (docs/Clocks.md). For people who may set the clocks of a GPU, which takes root,
and who have it to themselves: it locks one pair of clocks of cores and memory after the
other, and measures time and power of each layer with nm-run --energy. The clocks are
given back at the end, however it ends.

Usage: collect_clocks.py --set-clocks --gpu G --out SWEEP.json [options] FILE.mlir...
       collect_clocks.py --dry-run --gpu G [options] FILE.mlir...
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import clocks
from clock_locks import ClockError, Locks, NvidiaSmi

FIELDS = ("type", "batch", "tokens", "outputs", "inputs", "encoding")
# Lowest memory clock, as a fraction of the highest, at which a GPU is not idle.
LEAST_MEMORY = 0.4


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE.mlir")
    parser.add_argument("--gpu", required=True, help="as nm-compile names it: h100")
    parser.add_argument("--out", type=pathlib.Path, help="the sweep")
    parser.add_argument(
        "--set-clocks",
        action="store_true",
        help="without it, nothing is set and nothing is measured",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done, and stop"
    )
    parser.add_argument("--tokens", default="2048", help="numbers of them: 1,2048")
    parser.add_argument(
        "--cores", type=int, default=12, help="core clocks of each memory clock"
    )
    parser.add_argument(
        "--least-core", type=float, default=0.4, help="as a part of the highest"
    )
    parser.add_argument("--seconds", type=float, default=1, help="of a loop, at least")
    parser.add_argument("--repeats", type=int, default=2, help="loops of a point")
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="the tools"
    )
    given = parser.parse_args(argv)
    if not given.set_clocks and not given.dry_run:
        parser.error(
            "this locks the clocks of the GPU and gives them back; say --set-clocks "
            "if you may, or --dry-run to see what it would do"
        )
    if given.set_clocks and not given.dry_run and not given.out:
        parser.error("--out SWEEP.json is missing")
    if given.cores < 3 or not 0 < given.least_core < 1:
        parser.error("--cores is 3 at least, and --least-core between 0 and 1")
    try:
        given.tokens = [int(number) for number in given.tokens.split(",")]
    except ValueError:
        parser.error(f"--tokens: '{given.tokens}' is no list of numbers such as 1,2048")
    return given


def spread(values, count, least):
    """Up to `count` of `values` from `least` on, evenly, with the highest."""
    values = [value for value in sorted(values) if value >= least]
    if len(values) <= count:
        return values
    last = len(values) - 1
    return [values[round(i * last / (count - 1))] for i in range(count)]


def choose_pairs(supported, count, least_core):
    """(core clock, memory clock) of what is measured, in MHz."""
    highest = max(supported)
    pairs = []
    for memory in sorted(supported):
        if memory >= LEAST_MEMORY * highest:
            cores = supported[memory]
            pairs += [
                (core, memory) for core in spread(cores, count, least_core * max(cores))
            ]
    return pairs


def check_gpu(name, gpu):
    if gpu.lower() not in name.lower().replace(" ", ""):
        raise ClockError(f"the GPU is '{name}', and --gpu says {gpu}")


class Tools:
    """nm-compile and nm-run."""

    def __init__(self, given, backend):
        self.given, self.backend = given, backend
        self.reads_volts = backend.volts() is not None

    def call(self, name, *arguments):
        command = [str(self.given.bin / name), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise ClockError(f"cannot run {command[0]}: {error}") from error
        if done.returncode:
            raise ClockError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
        return done.stdout

    def describe(self, file, tokens):
        """The one product of `file` as the sweep names it, without points."""
        flags = ("--candidates", 1, "--tokens", tokens, "--gpu", self.given.gpu)
        products = json.loads(self.call("nm-compile", file, *flags))
        if len(products) != 1:
            raise ClockError(
                f"{file} has {len(products)} sparse products, whose power would be "
                "one; a file of the sweep has one"
            )
        best = products[0]["candidates"][0]
        return {
            "layer": f"{file.stem}_{tokens}",
            **{name: products[0][name] for name in FIELDS},
            "schedule": best["schedule"],
            "parts": best["clock_parts"],
        }

    def read_volts(self):
        return self.backend.volts() if self.reads_volts else None

    def measure(self, file, layer):
        """One point, at the clocks that the GPU has."""
        given = self.given
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "run.json")
            with clocks.Watch(1.0, self.read_volts) as watch:
                self.call(
                    "nm-run",
                    *(file, "--size", layer["tokens"], "--device", "cuda"),
                    *("--gpu", given.gpu, "--schedule", layer["schedule"]),
                    *("--energy", "--energy-seconds", given.seconds),
                    *("--energy-repeats", given.repeats, "--json", report),
                )
            run = json.loads(report.read_text("utf-8"))
        ours = run["energy"]["ours"]
        # At low clocks it may be that of a GPU without work, which comes first.
        read = sorted(volts for _, volts in watch.readings)
        return {
            "core_mhz": ours["sm_mhz"],
            "memory_mhz": ours["memory_mhz"],
            "volts": read[len(read) // 2] if read else None,
            "us": ours["us"],
            "watts": ours["watts"],
            "mj_half_width": ours.get("mj_half_width"),
            "celsius": ours.get("celsius"),
            "slowdowns": ours.get("slowdowns", []),
        }, run.get("commit")


def measure_all(given, tools, locks, pairs, sweep):
    """Fills `sweep`, the GPU's own clocks first, with a line for each point."""
    layers = [(file, tokens) for file in given.files for tokens in given.tokens]
    entries = [(file, tools.describe(file, tokens)) for file, tokens in layers]
    locks_memory = len({memory for _, memory in pairs}) > 1
    total, done, start = len(entries) * (1 + len(pairs)), 0, time.monotonic()
    for pair in [None, *pairs]:
        if pair:
            locks.set(pair[0], pair[1] if locks_memory else None)
        for file, layer in entries:
            point, sweep["commit"] = tools.measure(file, layer)
            if not pair:
                layer.update(unlocked=point, points=[])
                sweep["layers"].append(layer)
            else:
                asked = dict(zip(("asked_core_mhz", "asked_memory_mhz"), pair))
                layer["points"].append({**asked, **point})
            done += 1
            left = (time.monotonic() - start) / done * (total - done) / 60
            at = "without a lock" if not pair else f"{pair[0]} and {pair[1]} MHz"
            print(
                f"[{done}/{total}] {at}: {layer['layer']} {point['us']:.1f} us, "
                f"{point['watts']:.0f} W at {point['core_mhz']:.0f} and "
                f"{point['memory_mhz']:.0f} MHz; {left:.0f} min left",
                flush=True,
            )


def print_plan(given, name, pairs):
    layers = len(given.files) * len(given.tokens)
    print(f"{name}, {len(pairs)} pairs of clocks and none; layers: {layers}")
    for core, memory in pairs:
        print(f"lock {core} MHz of the cores, {memory} MHz of the memory; measure")
    print("give the clocks back: nvidia-smi --reset-gpu-clocks, --reset-memory-clocks")


def collect(given, backend):
    name = backend.name()
    check_gpu(name, given.gpu)
    pairs = choose_pairs(backend.supported(), given.cores, given.least_core)
    if given.dry_run:
        print_plan(given, name, pairs)
        return
    sweep = {"gpu": name, "commit": None, "complete": False, "layers": []}
    try:
        with Locks(backend) as locks:
            locks.set(pairs[-1][0], None)  # Says at once if this is not allowed.
            backend.unlock()
            measure_all(given, Tools(given, backend), locks, pairs, sweep)
            sweep["complete"] = True
    finally:
        if sweep["layers"]:
            given.out.write_text(json.dumps(sweep, indent=1) + "\n", "utf-8")
            state = "the sweep" if sweep["complete"] else "what there is of the sweep"
            print(f"{given.out}: {state}")


def main(argv=None, backend=None):
    given = arguments_of(argv)
    try:
        collect(given, backend or NvidiaSmi())
    except ClockError as error:
        hint = "; setting clocks takes root" if "ermission" in str(error) else ""
        print(f"collect_clocks.py: {error}{hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
