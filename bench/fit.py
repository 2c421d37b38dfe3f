#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the costs in the table of a GPU from kernels that were measured on it.

Every sample of share/nm_sparse/samples/GPU.jsonl (sample.py) is a kernel of a layer
and what it took. nm-compile counts its work; the costs are those for which the formula
of the cost model, in libnm_sparse_cost_model.so, comes closest to all times. Prints how
close, by family of kernels.

With --write the costs become those of share/nm_sparse/gpus/GPU.json. With --check the
table must predict the times as closely as a new fit does. With --judge SAMPLES nothing
is fitted: the table is compared with kernels that it was not fitted to, against bars.

Usage: fit.py --gpu h200 [--bin FOLDER] [--write | --check | --judge SAMPLES.jsonl]
"""

import argparse
import json
import pathlib
import statistics
import sys

import fitting
import samples
from report import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES, SAMPLES = (ROOT / "share/nm_sparse" / name for name in ("gpus", "samples"))

# The bars of --judge: the median error, and in how many layers the best of the
# schedules that the model ranks first is this close to the best that was measured.
MOST_MEDIAN, FIRST, CLOSE, LEAST_CLOSE = 0.12, 12, 1.03, 0.95
# nm-compile warns of products that are predicted to take longer than this part of
# what the dense library is predicted to (kCaution). Of what it chooses, nothing may
# take this much longer than dense without a warning.
CAUTION, SLOWER = 0.75, 1.05
# How much worse than a new fit the table may be, of the median error.
SLACK = 0.02


def share_of(values, part):
    """The value that `part` of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def errors(counted, predicted):
    return [mine / one.us - 1 for mine, one in zip(predicted, counted.samples)]


def show_errors(counted, found):
    rows = []
    for name in [None, *counted.families]:
        own = [
            error
            for error, family in zip(found, counted.family)
            if name in (None, family)
        ]
        sizes = [abs(error) for error in own]
        rows.append(
            [name or "all", len(own), f"{100 * statistics.median(sizes):.1f} %"]
            + [f"{100 * statistics.median(own):+.1f} %"]
            + [f"{100 * share_of(sizes, 0.9):.0f} %"]
        )
    return table(["family", "kernels", "median error", "bias", "90 % within"], rows)


def losses(counted, predicted):
    """[(loss of the best of the first ones, loss of the first one)] of layers with
    several schedules: times as long as the best known one takes. The former is None
    where there are no others than the first ones."""
    layers = {}
    for one, mine in zip(counted.samples, predicted):
        layers.setdefault(one.layer, []).append((mine, one.us))
    found = []
    for kernels in layers.values():
        if len(kernels) == 1:
            continue
        best = min(us for _, us in kernels)
        ranked = [us for _, us in sorted(kernels)]
        first = min(ranked[:FIRST]) / best if len(kernels) > FIRST else None
        found.append((first, ranked[0] / best))
    return found


def unsaid(counted, predicted, dense):
    """The kernels that are ranked first in their layers, take longer than dense, and
    are predicted to be faster beyond doubt."""
    first = {}
    for one, mine, theirs in zip(counted.samples, predicted, dense):
        first[one.layer] = min(
            first.get(one.layer, (mine, theirs, one)),
            (mine, theirs, one),
            key=lambda entry: entry[0],
        )
    return [
        one
        for mine, theirs, one in first.values()
        if one.us > SLOWER * one.dense_us > 0 and mine < CAUTION * theirs
    ]


def judge(counted, predicted, dense):
    """Prints how the table does, by its times of kernels and of dense products; the
    bars that it misses."""
    found = errors(counted, predicted)
    print(show_errors(counted, found))
    median = statistics.median(map(abs, found))
    chosen = losses(counted, predicted)
    one = statistics.geometric_mean(one for _, one in chosen)
    print(f"\n{len(chosen)} layers: the first choice takes {one:.3f} times the least")
    firsts = [first for first, _ in chosen if first]
    close = statistics.fmean(first <= CLOSE for first in firsts) if firsts else None
    if firsts:
        print(
            f"{len(firsts)} layers: the best of the first {FIRST} is within "
            f"{100 * CLOSE - 100:.0f} % of the best known in {100 * close:.1f} %"
        )
    slow = unsaid(counted, predicted, dense)
    for one in slow:
        print(
            f"{one.layer.name}: {one.us} us, dense {one.dense_us}, not said: "
            f"{one.schedule}"
        )
    missed = [f"{len(slow)} slower than dense, not said"] if slow else []
    if median > MOST_MEDIAN:
        missed.append(f"median error {median:.3f} > {MOST_MEDIAN}")
    if firsts and close < LEAST_CLOSE:
        missed.append(f"first {FIRST} close in {close:.3f} < {LEAST_CLOSE}")
    return missed


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gpu", required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--judge", type=pathlib.Path, metavar="SAMPLES.jsonl")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="samples of each Nth layer"
    )
    arguments = parser.parse_args(argv)
    path = TABLES / f"{arguments.gpu}.json"
    whole = json.loads(path.read_text("utf-8"))
    costs = whole["costs"]
    formula = fitting.Formula(arguments.bin.parent / "lib")
    source = arguments.judge or SAMPLES / f"{arguments.gpu}.jsonl"
    head, measured = samples.read(source)
    layers = list(dict.fromkeys(one.layer for one in measured))[:: arguments.every]
    measured = [one for one in measured if one.layer in set(layers)]
    counted = fitting.count(
        measured, arguments.bin / "nm-compile", arguments.gpu, formula
    )
    before = formula.predict(counted, costs)
    if arguments.judge:
        missed = judge(counted, before, formula.predict_all_dense(counted, costs))
        for bar in missed:
            print(f"fit.py: {bar}", file=sys.stderr)
        return 1 if missed else 0
    fitted = fitting.fit(formula, counted, costs)
    after = formula.predict(counted, fitted)
    print(show_errors(counted, errors(counted, after)))
    medians = [
        statistics.median(map(abs, errors(counted, times))) for times in (before, after)
    ]
    print(f"\nmedian error {medians[0]:.4f} before, {medians[1]:.4f} fitted")
    if arguments.check:
        return 0 if medians[0] <= medians[1] + SLACK else 1
    if arguments.write and arguments.every == 1:
        fitted["source"] = f"{source.relative_to(ROOT)}: {head['gpu']}"
        whole["costs"] = fitted
        path.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
