#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The energy model against measured energies, and what would fit them better.

The layers of --fit and --judge were drawn by `draw.py --energy`. The costs of
share/nm_sparse/gpus are fitted to those of --fit alone: non-negative least
squares of relative errors. A product at the power limit says only that it takes at
least as much, so that it counts where the model says less. Printed are the costs,
and the errors for both lists, with the measured and with the predicted time. With
--hold it fails if the layers of --judge miss a bar, or the table has other costs.

With --choices, the costs are those of the GPU of these results of energy_choice.py:
its sparse products count as well, and those of --fit, of another GPU with the same
SMs, WEIGHT times as much, so that dense ones are not forgotten.

Usage: fit_energy.py --fit RESULT.json... --judge RESULT.json... --bin FOLDER
                     [--choices RESULT.json...] [--hold] [--json OUT.json]
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from energy_samples import Formula, read, read_choices
from report import table

# Bars of --hold: median error with measured and with predicted time, and the
# share of the products whose error, with measured time, is less than a quarter.
MOST_MEASURED, MOST_PREDICTED, LEAST_WITHIN = 0.06, 0.10, 0.95
QUARTER = 0.25
# Costs of the table have three digits.
ROUNDING = 0.006

# Costs that are fitted, and the events that they are of; idle and active are watts.
PER_EVENT = {
    "tensorFlop": "tensorFlops",
    "sparseTensorFlop": "sparseTensorFlops",
    "ffmaFlop": "ffmaFlops",
    "laneFlop": "laneFlops",
    "l2Byte": "l2Bytes",
    "dramByte": "dramBytes",
}
# Seconds of a launch in which no SM works, as the cost model has it
# (lib/Analysis/CostTable.cpp).
LAUNCH = 1.45e-6
# What errors of --fit count beside those of --choices.
WEIGHT = 3
# What a product passes the limit by, before it says something of growth.
CLEARLY = 1.15


def row_of(sample):
    """What costs multiply."""
    seconds = sample.us * 1e-6
    running = max(0, seconds - LAUNCH * sample.events["launches"])
    return [seconds, running * sample.events["busySMs"]] + [
        sample.events[name] for name in PER_EVENT.values()
    ]


def fit_costs(samples, formula, weights=None):
    """Of relative errors, without what the limit alone explains."""
    weights = weights or {}
    limit = max(s.limit for s in samples)
    used = samples
    for _ in range(8):
        counts = [weights.get(id(s), 1.0) for s in used]
        rows = [
            [count * number / (s.mj * 1e-3) for number in row_of(s)]
            for count, s in zip(counts, used)
        ]
        # Columns of like size: the solver squares them.
        sizes = [max(map(abs, column)) or 1 for column in zip(*rows)]
        scaled = [[n / size for n, size in zip(row, sizes)] for row in rows]
        found = formula.solve(scaled, counts)
        costs = dict(
            zip(
                ["idle", "active", *PER_EVENT],
                [n / size for n, size in zip(found, sizes)],
            ),
            launch=LAUNCH,
            limit=limit,
            growth=0,
        )
        kept = [
            s
            for s in samples
            if not s.is_at_limit or passed(s, s.us, costs, formula) < 1
        ]
        if kept == used:
            break
        used = kept
    return costs


def passed(sample, us, costs, formula):
    """How many times the limit all parts together take."""
    unlimited = formula.joules(sample.events, us, {**costs, "limit": math.inf})
    return unlimited / (costs["limit"] * us * 1e-6)


def fit_growth(samples, costs, formula):
    """How much longer products take once their clocks have fallen: their times in a
    loop of a second over those of a few runs. Not at all, where none show it."""
    found = []
    for s in samples:
        times = passed(s, s.few_us, costs, formula)
        if s.is_at_limit and times > CLEARLY:
            found.append(math.log(s.us / s.few_us) / math.log(times))
    return statistics.median(found) if found else 0.0


def errors(samples, costs, formula, predicted=False):
    """Predicted over measured energy, less one."""
    return [
        formula.joules(
            s.events, s.predicted_us if predicted else s.us, costs, predicted
        )
        / (s.mj * 1e-3)
        - 1
        for s in samples
    ]


def fit(samples, formula, choices=()):
    weights = {id(s): float(WEIGHT) for s in samples} if choices else {}
    costs = fit_costs([*samples, *choices], formula, weights)
    return {**costs, "growth": fit_growth(samples, costs, formula)}


def summarize(found):
    sizes = [abs(e) for e in found]
    return {
        "median": round(statistics.median(sizes), 4),
        "within_quarter": round(statistics.fmean(e < QUARTER for e in sizes), 4),
        "worst": round(max(found, key=abs), 4),
        "bias": round(statistics.median(found), 4),
        "products": len(found),
    }


def by_family(samples, found):
    families = {"all": []}
    for sample, error in zip(samples, found):
        families["all"].append(error)
        families.setdefault(sample.family, []).append(error)
    return {name: summarize(e) for name, e in sorted(families.items())}


def print_errors(title, families):
    rows = [
        [
            name,
            f["products"],
            f"{100 * f['median']:.1f} %",
            f"{100 * f['within_quarter']:.0f} %",
            f"{100 * f['bias']:+.0f} %",
            f"{100 * f['worst']:+.0f} %",
        ]
        for name, f in families.items()
    ]
    print(f"\n{title}")
    print(table(["family", "products", "median", "in 25 %", "bias", "worst"], rows))


def compare_with_table(costs, table):
    """The costs of the build that are not those that are found."""
    return [
        f"{name} is {table[name]:.3g} in the table, and {cost:.3g} fits"
        for name, cost in costs.items()
        if abs(table[name] - cost) > ROUNDING * abs(cost)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fit", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--judge", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--choices", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    formula = Formula(options.bin.parent)
    fitted, judged = read(options.fit, options.bin), read(options.judge, options.bin)
    shared = {s.layer for s in fitted} & {s.layer for s in judged}
    if shared:
        raise SystemExit(f"{sorted(shared)[0]} is in both lists")
    choices = read_choices(options.choices, options.bin)
    costs = fit(fitted, formula, choices)
    print("\n".join(f"/*{name}*/ {costs[name]:.3g}," for name in formula.costs))
    result = {
        "fit": [path.name for path in options.fit],
        "judge": [path.name for path in options.judge],
        "costs": {name: float(f"{cost:.4g}") for name, cost in costs.items()},
        "errors": {},
    }
    for name, samples in (("fit", fitted), ("judge", judged)):
        for predicted in (False, True):
            label = f"{name}, {'predicted' if predicted else 'measured'} time"
            families = by_family(samples, errors(samples, costs, formula, predicted))
            result["errors"][label] = families
            print_errors(label, families)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    measured = result["errors"]["judge, measured time"]["all"]
    predicted = result["errors"]["judge, predicted time"]["all"]
    missed = [
        text
        for text, holds in (
            ("median, measured time", measured["median"] <= MOST_MEASURED),
            ("median, predicted time", predicted["median"] <= MOST_PREDICTED),
            ("within a quarter", measured["within_quarter"] >= LEAST_WITHIN),
        )
        if not holds
    ]
    missed += compare_with_table(costs, (choices or fitted)[0].table)
    if options.hold and missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
