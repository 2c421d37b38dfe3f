#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost model against measured times, and what would fit them better.

Every schedule that a result file has a time of is predicted anew, by the
nm-compile of --bin. For each family of kernels: the errors of the predictions.
For each layer with several schedules: how much longer the model's choice among
them takes than the best. With --fit the costs of lib/Analysis/CostTable.cpp are
moved to where errors and losses are smallest, and printed as rows of that table.
With --hold it fails if the model misses a bar of those below.

Usage: fit_model.py RESULT.json... --bin FOLDER [--fit] [--hold] [--list LIST.txt]
"""

import argparse
import concurrent.futures
import ctypes
import dataclasses
import itertools
import json
import math
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

from layers import EPILOGUES, parse
from report import geomean, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from schedule_spelling import respell_module  # noqa: E402

# The columns of the table in CostTable.cpp: (name, lowest, highest, step).
COSTS = [
    ("mathShare", 0.5, 1.1, 0.02),
    ("l2Share", 0.2, 1.5, 0.05),
    ("shown", 0.02, 1.0, 0.02),
    ("step", 0.0, 2e-6, 0.02e-6),
    ("copy", 0.0, 200e-9, 1e-9),
    ("latency", 0.0, 5e-6, 0.1e-6),
    ("tile", 0.0, 10e-6, 0.1e-6),
    ("written", 0.0, 1.5, 0.05),
]

# Those that all families share.
SHARED = [
    ("launch", 0.0, 4e-6, 0.1e-6),
    ("split", 0.0, 20e-6, 0.2e-6),
    ("stream", 0.0, 20e-6, 0.5e-6),
    ("apart", 0.5, 2.0, 0.02),
    ("overlap", 0.0, 2e-6, 0.05e-6),
]


# What --hold demands: the median error of each family, and how much longer than
# the best measured schedule the chosen one may take.
MOST_ERROR, MOST_LOSS, WORST_LOSS = 0.20, 1.05, 1.15


class Formula:
    """The cost model's formula, in libnm_sparse_cost_model.so of a build."""

    def __init__(self, build):
        self.library = ctypes.CDLL(str(build / "lib/libnm_sparse_cost_model.so"))
        self.library.nmsCombineTerms.restype = ctypes.c_double
        self.names = [
            self.read_names(f"nms{kind}Name")
            for kind in ("CostTerm", "FamilyCost", "SharedCost")
        ]

    def read_names(self, function):
        get = getattr(self.library, function)
        get.restype = ctypes.c_char_p
        return [
            name.decode() for name in iter(map(get, itertools.count()).__next__, None)
        ]

    def __call__(self, terms, costs):
        """Seconds. `costs` has those of a family and the shared ones."""
        arrays = [
            (ctypes.c_double * len(names))(*(numbers[name] for name in names))
            for names, numbers in zip(self.names, (terms, costs, costs))
        ]
        return self.library.nmsCombineTerms(*arrays)


class Sample:
    """One measured schedule of one layer."""

    def __init__(self, layer, schedule, run, source, formula):
        self.layer, self.schedule, self.run = layer, schedule, run
        self.formula = formula
        self.source = source  # Times of one file compare with each other.
        self.us = run["time"]["median_us"]
        self.model = None  # What nm-compile says of it.

    @property
    def family(self):
        return self.model["family"]

    def predict(self, costs):
        return self.formula(self.model["terms"], costs[self.family]) * 1e6


def schedule_of(run, lines):
    """The schedule of a run. One of a kernel that was lowered apart, in the file
    L7.mlir, is in line 7 of the list it was lowered from."""
    if run.get("schedules"):
        return run["schedules"][0]
    lowered = re.search(r"--lowered \S*?L(\d+)\.mlir", run.get("arguments", ""))
    if lowered and int(lowered[1]) < len(lines):
        words = shlex.split(lines[int(lowered[1])])
        if "--schedule" in words:
            return words[words.index("--schedule") + 1]
    return None


def read(paths, lines, formula):
    samples = []
    for path in paths:
        for run in json.loads(path.read_text("utf-8")).get("runs", []):
            layer = parse(pathlib.Path(run.get("file", "")).stem)
            schedule = schedule_of(run, lines)
            if layer and schedule and run.get("passed") and "time" in run:
                samples.append(Sample(layer, schedule, run, path, formula))
    return samples


def ask(sample, tool):
    """Fills in what the model says; the reason why it says nothing."""
    layer = sample.layer
    if layer.epilogue not in EPILOGUES:  # Of older files; the model knows none.
        layer = dataclasses.replace(layer, epilogue="product")
    source = respell_module(layer.text(sample.schedule))
    done = subprocess.run(
        [tool, "-", "--candidates", "1", "--layout", "keep"]
        + ["--tokens", str(sample.layer.shape[0])],
        input=source,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    product = json.loads(done.stdout)[0]
    sample.model = product["given"]
    sample.dense_us = product["dense_us"]
    sample.model["costs"].update(sample.model.pop("shared_costs"))
    if not sample.run.get("overlapping_launches"):
        sample.model["terms"]["overlaps"] = 0
    return None


def errors(samples, costs):
    return [sample.predict(costs) / sample.us - 1 for sample in samples]


def by_family(samples):
    families = {}
    for sample in samples:
        families.setdefault(sample.family, []).append(sample)
    return families


def percent(value):
    return f"{100 * value:+.0f} %"


def accuracy(samples, costs):
    rows = []
    for family, members in sorted(by_family(samples).items()):
        found = errors(members, costs)
        worst = max(range(len(found)), key=lambda i: abs(found[i]))
        rows.append(
            [family, len(members)]
            + [f"{100 * statistics.median(map(abs, found)):.1f} %"]
            + [percent(statistics.median(found)), percent(found[worst])]
            + [members[worst].layer.name, members[worst].schedule]
        )
    header = ["family", "runs", "median error", "bias", "worst", "of", "with"]
    return table(header, rows)


def choices(samples, costs):
    """[(loss, layer, chosen, best)] of layers with several schedules."""
    layers = {}
    for sample in samples:
        layers.setdefault((sample.layer, sample.source), []).append(sample)
    found = []
    for (layer, _), members in layers.items():
        if len({sample.schedule for sample in members}) > 1:
            chosen = min(members, key=lambda sample: sample.predict(costs))
            best = min(members, key=lambda sample: sample.us)
            found.append((chosen.us / best.us, layer, chosen, best))
    return sorted(found, key=lambda entry: -entry[0])


def loss(samples, costs, worst=5):
    found = choices(samples, costs)
    if not found:
        return "no layer has several schedules"
    losses = [entry[0] for entry in found]
    text = f"{len(found)} layers: choice / best {geomean(losses):.3f} (geomean), "
    rows = [
        [f"{ratio:.2f}", layer.name, chosen.schedule, best.schedule]
        for ratio, layer, chosen, best in found[:worst]
        if ratio > 1.01
    ]
    text += f"{losses[0]:.3f} (worst)"
    return text + "\n\n" + table(["loss", "layer", "chosen", "best"], rows)


def missed(samples, costs):
    """The bars that the model misses, in words."""
    found = []
    for family, members in sorted(by_family(samples).items()):
        error = statistics.median(map(abs, errors(members, costs)))
        if error > MOST_ERROR:
            found.append(f"{family}: median error {error:.3f} > {MOST_ERROR}")
    picks = choices(samples, costs)
    losses = [entry[0] for entry in picks] or [1.0]
    if geomean(losses) > MOST_LOSS:
        found.append(f"choice / best {geomean(losses):.3f} > {MOST_LOSS} (geomean)")
    if losses[0] > WORST_LOSS:
        layer = picks[0][1].name
        found.append(f"{layer}: choice / best {losses[0]:.3f} > {WORST_LOSS}")
    # A choice that is slower than the dense library has to be called so.
    for _, layer, chosen, _ in picks:
        dense_us = chosen.run.get("cublas_us", math.inf)
        slower = chosen.us > dense_us * WORST_LOSS
        if slower and chosen.predict(costs) < chosen.dense_us:
            found.append(
                f"{layer.name}: takes {chosen.us:.1f} us, dense {dense_us:.1f} us, "
                f"but is predicted to be faster than dense"
            )
    return found


def dense(samples):
    """The dense library: predictDense() against cuBLAS."""
    rows = []
    for type_ in sorted({sample.layer.type for sample in samples}):
        pairs = {
            s.layer.shape: (s.dense_us, s.run["cublas_us"])
            for s in samples
            if s.layer.type == type_ and "cublas_us" in s.run
        }
        found = [mine / theirs - 1 for mine, theirs in pairs.values()]
        if found:
            worst = max(found, key=abs)
            median = statistics.median(map(abs, found))
            rows.append([type_, len(found), f"{100 * median:.1f} %", percent(worst)])
    return table(["dense", "shapes", "median error", "worst"], rows) if rows else ""


def objective(samples, costs, start):
    """The mean error of the logarithm, twice the logarithm of what the choices
    lose, and a little for every cost that has moved: what the times do not
    decide stays as it is."""
    wrong = [abs(math.log(sample.predict(costs) / sample.us)) for sample in samples]
    lost = [math.log(entry[0]) for entry in choices(samples, costs)]
    moved = sum(
        abs(costs[family][name] - start[family][name]) / (highest - lowest)
        for family in costs
        for name, lowest, highest, _ in COSTS + SHARED
    )
    return (
        statistics.fmean(wrong)
        + 2 * (statistics.fmean(lost) if lost else 0)
        + 0.005 * moved / len(costs)
    )


def fit(samples, start):
    """Moves one cost at a time, in ever smaller steps, while that helps."""
    costs, best = start, objective(samples, start, start)
    moves = [([family], cost) for family in start for cost in COSTS]
    moves += [(list(start), cost) for cost in SHARED]
    for scale in (64, 32, 16, 8, 4, 2, 1):
        improved = True
        while improved:
            improved = False
            for families, (name, lowest, highest, step) in moves:
                for way in (scale * step, -scale * step):
                    value = costs[families[0]][name] + way
                    value = min(highest, max(lowest, value))
                    moved = {f: {**costs[f], name: value} for f in families}
                    trial = {**costs, **moved}
                    found = objective(samples, trial, start)
                    if found < best - 1e-6:
                        costs, best, improved = trial, found, True
    return costs


def show_row(family, costs):
    """A row of CostTable.cpp."""

    def number(name):
        value = costs[name]
        if name in ("step", "latency", "tile"):
            return f"{value * 1e6:.3g}e-6" if value else "0"
        if name == "copy":
            return f"{value * 1e9:.3g}e-9" if value else "0"
        return f"{value:.3g}"

    return f"/*{family}*/ {{{', '.join(number(name) for name, *_ in COSTS)}}},"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--hold", action="store_true", help="fail if a bar is missed")
    parser.add_argument("--list", type=pathlib.Path, help="of kernels lowered apart")
    arguments = parser.parse_args(argv)
    lines = arguments.list.read_text().splitlines() if arguments.list else []
    try:
        formula = Formula(arguments.bin.resolve().parent)
    except OSError as error:
        raise SystemExit(f"fit_model.py: --bin {arguments.bin}: {error}") from None
    samples = read(arguments.results, lines, formula)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tool = str(arguments.bin / "nm-compile")
        reasons = list(pool.map(lambda sample: ask(sample, tool), samples))
    for sample, reason in zip(samples, reasons):
        if reason:
            print(f"left out: {sample.layer.name}: {reason}", file=sys.stderr)
    samples = [sample for sample in samples if sample.model]
    if not samples:
        raise SystemExit("fit_model.py: no measured schedule in these files")
    costs = {sample.family: sample.model["costs"] for sample in samples}
    print(f"{len(samples)} times\n\n{accuracy(samples, costs)}\n")
    print(f"{loss(samples, costs)}\n\n{dense(samples)}")
    if arguments.fit:
        fitted = fit(samples, costs)
        print(f"\nfitted\n\n{accuracy(samples, fitted)}\n\n{loss(samples, fitted)}\n")
        for family in fitted:
            print(show_row(family, fitted[family]))
        for name, *_ in SHARED:
            print(f"/*{name}*/ {next(iter(fitted.values()))[name] * 1e6:.3g}e-6")
    failures = missed(samples, costs) if arguments.hold else []
    for failure in failures:
        print(f"fit_model.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
