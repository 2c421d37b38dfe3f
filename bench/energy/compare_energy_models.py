#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Energy and power of products by ridge regression and by boosted trees, from what is
known without running them, from counters of the profiler, and from both, beside the
energy model of fit_energy.py. Needs scikit-learn.

All learn from the products of --fit alone, and are tried on products of three kinds:
those of a family that is left out of --fit (of both lists), folds of --fit, and other
layers, those of --judge. Sparse products are also compared by themselves, since only
their code is known. Alphas of ridge are chosen by cross-validation of the same kind
within what is learned from; parameters of trees are fixed. The energy model is fitted
anew to each. Where a time is known, what regressors learn of energy is watts for that
time. `median` knows no product: it says the median of what it learned from.

Rows with counters need --counters, a file of `profile_energy.py condense`.

Usage: compare_energy_models.py --fit RESULT.json... --judge RESULT.json...
                                --bin FOLDER [--json OUT.json]
                                [--counters COUNTERS.json [--profiled]]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np
from energy_features import Product, read_counters, read_products
from energy_samples import Formula
from fit_energy import QUARTER, fit, passed
from report import table
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED, FOLDS = 0, 5
ALPHAS = np.logspace(-3, 4, 15)
LEFT_OUT, FOLDED, OTHERS = "family left out", "folds", "other layers"
VALIDATIONS = (LEFT_OUT, FOLDED, OTHERS)
ENERGY, POWER = "energy", "power"

STATIC = ("events", "size")
# What regressors are given, by the name of a row.
ALL_SETS = {
    "static": STATIC,
    "static, predicted time": (*STATIC, "predicted"),
    "static, measured time": (*STATIC, "measured"),
    "dynamic": ("measured", "counters"),
    "both": (*STATIC, "measured", "counters"),
}
SPARSE_SETS = {
    **ALL_SETS,
    "code": ("code",),
    "static, code": (*STATIC, "code"),
    "static, code, predicted time": (*STATIC, "code", "predicted"),
    "static, code, measured time": (*STATIC, "code", "measured"),
    "both": (*STATIC, "code", "measured", "counters"),
}
# (what is learned from, what is tried)
Split = Tuple[List[Product], List[Product]]


def known_sets(products: Sequence[Product], sets: dict) -> dict:
    """Those whose groups are known of each product."""
    known = set.intersection(*(set(p.groups) for p in products))
    return {name: groups for name, groups in sets.items() if known >= set(groups)}


def matrix(products: Sequence[Product], groups: Sequence[str]) -> np.ndarray:
    """Logs of one more than each number: (products, numbers of the groups)."""
    rows = [
        [p.groups[g][n] for g in groups for n in sorted(p.groups[g])] for p in products
    ]
    return np.log1p(np.array(rows, dtype=float))


def measured(products: Sequence[Product], target: str) -> np.ndarray:
    """Joules or watts."""
    samples = [p.sample for p in products]
    return np.array([1e-3 * s.mj if target == ENERGY else s.watts for s in samples])


def split(
    fitted: Sequence[Product], judged: Sequence[Product], validation: str
) -> Iterator[Split]:
    """What is learned from is always of `fitted`. The two products of a layer are in
    one fold."""
    if validation == LEFT_OUT:
        for family in sorted({p.family for p in fitted} | {p.family for p in judged}):
            yield (
                [p for p in fitted if p.family != family],
                [p for p in (*fitted, *judged) if p.family == family],
            )
    elif validation == FOLDED:
        for learned, tried in folds_of(fitted):
            yield [fitted[i] for i in learned], [fitted[i] for i in tried]
    else:
        yield list(fitted), list(judged)


def folds_of(products: Sequence[Product]):
    """Folds of layers in random order."""
    layers = sorted({p.sample.layer for p in products})
    order = np.random.default_rng(SEED).permutation(len(layers))
    places = dict(zip(layers, order))
    groups = [places[p.sample.layer] for p in products]
    return list(GroupKFold(FOLDS).split(groups, groups=groups))


def ridge(products: Sequence[Product], validation: str):
    """Its alpha is chosen by families that are left out where it is tried so."""
    folds = folds_of(products)
    families = [p.family for p in products]
    if validation == LEFT_OUT and len(set(families)) > 1:
        folds = list(LeaveOneGroupOut().split(families, groups=families))
    return GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": ALPHAS},
        scoring="neg_mean_squared_error",
        cv=folds,
    )


def trees(products: Sequence[Product], validation: str):
    return GradientBoostingRegressor(
        n_estimators=300,
        learning_rate=0.05,
        max_depth=3,
        subsample=0.8,
        random_state=SEED,
    )


def median(products: Sequence[Product], validation: str):
    return DummyRegressor(strategy="median")


REGRESSORS: Dict[str, Callable] = {"ridge": ridge, "boosted trees": trees}


def scale(products: Sequence[Product], groups, target: str) -> np.ndarray:
    """What is not learned: a time in seconds, where energy is wanted and one known."""
    seconds = {
        "measured": [p.sample.us * 1e-6 for p in products],
        "predicted": [p.sample.predicted_us * 1e-6 for p in products],
    }
    for time, found in seconds.items():
        if target == ENERGY and time in groups:
            return np.array(found)
    return np.ones(len(products))


def regress(groups, make: Callable, validation: str) -> Callable:
    """A predictor by a regressor of logs. Where a time is known, energy is learned as
    watts for that time."""

    def predict(learned, tried, target):
        wanted = measured(learned, target) / scale(learned, groups, target)
        model = make(learned, validation)
        model.fit(matrix(learned, groups), np.log(wanted))
        found = np.exp(model.predict(matrix(tried, groups)))
        return found * scale(tried, groups, target)

    return predict


def physical(formula: Formula, time: str) -> Callable:
    """A predictor by the energy model, with costs of what it learned from."""

    def predict(learned, tried, target):
        costs = fit([p.sample for p in learned], formula)
        found = []
        for s in (p.sample for p in tried):
            few = time == "predicted"
            us = s.predicted_us if few else s.us
            if target == ENERGY:
                found.append(formula.joules(s.events, us, costs, few))
            else:
                found.append(min(1, passed(s, us, costs, formula)) * costs["limit"])
        return np.array(found)

    return predict


def summarize(errors: Sequence[float]) -> dict:
    return {
        "median": round(float(np.median(errors)), 4),
        "p95": round(float(np.percentile(errors, 95)), 4),
        "within_quarter": round(float(np.mean(np.array(errors) < QUARTER)), 4),
        "products": len(errors),
    }


def try_out(predict: Callable, splits: Sequence[Split], target: str) -> dict:
    """Absolute errors over what was measured, of all that is tried and by family."""
    errors: List[float] = []
    families: Dict[str, List[float]] = {}
    for learned, tried in splits:
        wanted = measured(tried, target)
        sizes = np.abs(predict(learned, tried, target) / wanted - 1)
        for product, size in zip(tried, sizes):
            errors.append(size)
            families.setdefault(product.family, []).append(size)
    result = summarize(errors)
    if len(splits) > 1:
        result["families"] = {n: summarize(e) for n, e in sorted(families.items())}
    return result


def compare(fitted, judged, sets: dict, formula: Formula) -> Iterator[dict]:
    """A row for each model, features, validation and target."""
    if len({p.family for p in fitted}) < 2:
        raise SystemExit("to leave one out, --fit must have two families of products")
    if len({p.sample.layer for p in fitted}) < 2 * FOLDS:
        raise SystemExit(f"for folds, --fit must have {2 * FOLDS} layers or more")
    if not judged:
        raise SystemExit("--judge must have a product to try")
    for validation in VALIDATIONS:
        splits = list(split(fitted, judged, validation))
        models = [("median", "none", regress(STATIC, median, validation))]
        for name, groups in known_sets([*fitted, *judged], sets).items():
            for regressor, make in REGRESSORS.items():
                models.append((regressor, name, regress(groups, make, validation)))
        for time in ("predicted", "measured"):
            known = f"static, {time} time"
            models.append(("energy model", known, physical(formula, time)))
        for model, features, predict in models:
            for target in (ENERGY, POWER):
                yield {
                    "model": model,
                    "features": features,
                    "validation": validation,
                    "target": target,
                    **try_out(predict, splits, target),
                }


def print_rows(rows: Sequence[dict]) -> None:
    shown = [
        [
            *(row[k] for k in ("products_of", "target", "validation", "features")),
            row["model"],
            row["products"],
            f"{100 * row['median']:.1f} %",
            f"{100 * row['p95']:.0f} %",
            f"{100 * row['within_quarter']:.0f} %",
        ]
        for row in rows
    ]
    head = ["of", "target", "validation", "features", "model", "products"]
    print(table([*head, "median", "95th percentile", "in 25 %"], shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fit", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--judge", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--counters", type=pathlib.Path)
    parser.add_argument("--profiled", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.profiled and not options.counters:
        parser.error("--profiled needs --counters")
    counters = read_counters(options.counters) if options.counters else None
    fitted, judged = (
        read_products(paths, options.bin, counters, options.profiled)
        for paths in (options.fit, options.judge)
    )
    shared = {p.sample.layer for p in fitted} & {p.sample.layer for p in judged}
    if shared:
        raise SystemExit(f"{sorted(shared)[0]} is in both lists")
    formula = Formula(options.bin.parent)
    rows = []
    for name, sets, is_in in (
        ("all", ALL_SETS, lambda p: True),
        ("sparse", SPARSE_SETS, lambda p: not p.is_dense),
    ):
        lists = [list(filter(is_in, products)) for products in (fitted, judged)]
        for row in compare(*lists, sets, formula):
            rows.append({"products_of": name, **row})
    print_rows(rows)
    if options.json:
        result = {
            "fit": [path.name for path in options.fit],
            "judge": [path.name for path in options.judge],
            "counters": options.counters.name if options.counters else None,
            "products": len(fitted) + len(judged),
            "rows": rows,
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
