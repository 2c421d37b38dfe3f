#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost model against measured times, and what would fit them better.

Every schedule that a result file has a time of is predicted anew, by the
nm-compile of --bin. For each family of kernels: the errors of the predictions.
For each layer with several schedules: how much longer the model's choice among
them takes than the best. With --fit the costs of lib/Analysis/CostTable.cpp are
moved to where errors and losses are smallest (fit_costs.py), and printed as rows of
that table. --judge prints how the model does on layers that were drawn at random,
beside the bars of bars.py. With --hold it fails if the model misses a bar: of
those with --judge, else of those below.

Usage: fit_model.py RESULT.json... --bin FOLDER [--fit] [--judge] [--hold]
                    [--list LIST.txt] [--record OUT.json --note TEXT]
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

import bars
import drawn
from fit_costs import COSTS, SHARED, fit
from layers import EPILOGUES, parse
from report import geomean, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from schedule_spelling import respell_module  # noqa: E402

# nm-compile warns of products that are predicted to take longer than this part of
# what the dense library is predicted to (kCaution in tools/nm-compile).
CAUTION = 0.75

# What --hold demands: the median error of each family, and how much longer than
# the best measured schedule the chosen one may take, on average and in 95 % of the
# layers.
MOST_ERROR, MOST_LOSS, LOSS_OF_95 = 0.20, 1.05, 1.15


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


def has_costs(family):
    """Products that predict their times themselves have none that could be fitted:
    those of their families are zeros."""
    return bool(family["mathShare"])


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

    @property
    def drawn(self):
        """Of a layer that bench/draw.py drew, and nobody chose."""
        return self.run.get("drawn", False)

    @property
    def layout(self):
        """As in the run: what the compiler would do now may differ."""
        before = self.run.get("before")
        if before is None:
            return "auto"
        return "feature-major" if before == "transposition" else "keep"

    def predict(self, costs):
        if not has_costs(costs[self.family]):
            return self.model["predicted_us"]
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
        report = json.loads(path.read_text("utf-8"))
        for run in [*report.get("runs", []), *drawn.runs(report)]:
            run.setdefault("before", drawn.before_of(run))
            layer = parse(pathlib.Path(run.get("file", "")).stem)
            schedule = schedule_of(run, lines)
            # Only one of several runs of a kernel compares results.
            passed = run.get("passed", "error" not in run)
            if layer and schedule and passed and "time" in run:
                samples.append(Sample(layer, schedule, run, path, formula))
    return samples


def ask(sample, tool):
    """Fills in what the model says; the reason why it says nothing."""
    layer = sample.layer
    if layer.epilogue not in EPILOGUES:  # In older files; unknown to the model.
        layer = dataclasses.replace(layer, epilogue="product")
    source = respell_module(layer.text(sample.schedule))
    done = subprocess.run(
        [tool, "-", "--candidates", "1", "--layout", sample.layout]
        + ["--tokens", str(sample.layer.shape[0])],
        input=source,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    product = json.loads(done.stdout)[0]
    before = sample.run.get("before")
    if before is not None and before != product["before"]:
        return f"ran with '{before}' before it, is compiled with '{product['before']}'"
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
    most = bars.share_of(losses[::-1], 0.95)
    if most > LOSS_OF_95:
        found.append(f"choice / best {most:.3f} > {LOSS_OF_95} (95 % of the layers)")
    # A choice that is slower than the dense library has to be called so.
    for _, layer, chosen, _ in picks:
        dense_us = chosen.run.get("cublas_us", math.inf)
        slower = chosen.us > dense_us * LOSS_OF_95
        if slower and chosen.predict(costs) < CAUTION * chosen.dense_us:
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


def show_cost(name, value):
    if name in ("copy", "index", "scattered"):
        return f"{value * 1e9:.3g}e-9"
    lowest = next(low for cost, low, _ in COSTS + SHARED if cost == name)
    return f"{value * 1e6:.3g}e-6" if lowest < 1e-3 else f"{value:.3g}"


def show_row(family, costs):
    """The costs of a family in lib/Products."""
    values = ", ".join(show_cost(name, costs[name]) for name, *_ in COSTS)
    return f"/*{family}*/ {{{values}}},"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--hold", action="store_true", help="fail if a bar is missed")
    parser.add_argument("--judge", action="store_true", help="by the bars")
    parser.add_argument("--list", type=pathlib.Path, help="of kernels lowered apart")
    parser.add_argument("--record", type=pathlib.Path, help="condense a report, only")
    parser.add_argument("--note", default="")
    arguments = parser.parse_args(argv)
    if arguments.record:
        (path,) = arguments.results
        report = json.loads(path.read_text("utf-8"))
        return drawn.write(report, arguments.record, arguments.note)
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
    failures = []
    if arguments.judge:
        picks = choices(samples, costs)
        text, failures = bars.judge(samples, costs, picks, CAUTION)
        print(f"\n{text}")
    elif arguments.hold:
        failures = missed(samples, costs)
    samples = [sample for sample in samples if has_costs(costs[sample.family])]
    if arguments.fit and samples:
        fitted = fit(samples, costs)
        print(f"\nfitted\n\n{accuracy(samples, fitted)}\n\n{loss(samples, fitted)}\n")
        for family in fitted:
            print(show_row(family, fitted[family]))
        for name, *_ in SHARED:
            value = next(iter(fitted.values()))[name]
            print(f"/*{name}*/ {show_cost(name, value)},")
        if arguments.judge:
            picks = choices(samples, fitted)
            print(f"\n{bars.judge(samples, fitted, picks, CAUTION)[0]}")
    for failure in failures:
        print(f"fit_model.py: {failure}", file=sys.stderr)
    return 1 if failures and arguments.hold else 0


if __name__ == "__main__":
    sys.exit(main())
