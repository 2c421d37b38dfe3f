# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs for which the cost model's formula comes closest to measured times."""

import concurrent.futures
import copy
import ctypes
import dataclasses
import itertools
import json
import os
import subprocess
import sys

import numpy as np
from scipy.optimize import least_squares

# Errors beyond this count as their size, and no more as their square.
ROBUST = 0.1
# Weight of errors against those of the other schedules of a layer, which decide what
# is chosen; and of costs that move, which keeps those where they are that no time
# decides.
RELATIVE, MOVED = 1.0, 0.1
# The factor by which a cost may change in one fit. Rates of the chip are known: what
# is far from them explains something else.
MOST = 30.0
MOST_OF_RATES = {"math": 1.6, "dram": 1.25}
# Exponents and shares have limits.
LIMITS = {"stepNorm": (1.5, 12.0), "norm": (2.0, 12.0), "lastWave": (0.05, 1.0)}


@dataclasses.dataclass
class Counted:
    """Samples, and what the compiler counts of each.

    work:       an array with a row a sample, of the numbers that Formula.work names.
    family:     of each sample; `families` are all of them.
    dense:      as work, of the dense product.
    on_cores:   whether that is one of tensor cores.
    """

    samples: list
    work: np.ndarray
    family: list
    dense: np.ndarray
    on_cores: np.ndarray

    @property
    def families(self):
        return sorted(set(self.family))


class Formula:
    """The cost model's formula, in libnm_sparse_cost_model.so."""

    def __init__(self, folder):
        self.library = ctypes.CDLL(str(folder / "libnm_sparse_cost_model.so"))
        self.work, self.product, self.shared, self.dense_work, self.dense_costs = (
            self._names(f"nms{kind}Name")
            for kind in ("Work", "ProductCost", "SharedCost", "DenseWork", "DenseCost")
        )

    def _names(self, function):
        get = getattr(self.library, function)
        get.restype = ctypes.c_char_p
        names = iter(map(get, itertools.count()).__next__, None)
        return [name.decode() for name in names]

    def _call(self, function, *arrays):
        arrays = [np.ascontiguousarray(one, dtype=float) for one in arrays]
        seconds = np.empty(len(arrays[0]))
        pointers = [
            one.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            for one in (*arrays, seconds)
        ]
        getattr(self.library, function)(len(seconds), *pointers)
        return seconds * 1e6

    def predict(self, counted, costs):
        """Microseconds of all samples."""
        rows = {
            family: [numbers[name] for name in self.product]
            for family, numbers in costs["families"].items()
        }
        table = np.array([rows[family] for family in counted.family])
        shared = [costs["shared"][name] for name in self.shared]
        return self._call("nmsCombineWork", counted.work, table, shared)

    def predict_all_dense(self, counted, costs):
        """Microseconds of the dense products beside all samples."""
        found = np.empty(len(counted.samples))
        for name, on_cores in (("tensorCores", True), ("cudaCores", False)):
            own = counted.on_cores == on_cores
            found[own] = self.predict_dense(counted.dense[own], costs["dense"][name])
        return found

    def predict_dense(self, work, costs):
        """Microseconds of dense products."""
        row = [costs[name] for name in self.dense_costs]
        return self._call("nmsCombineDense", work, row)


def ask(sample, tool, gpu):
    """The product as nm-compile describes it, or None and its error."""
    layout = "feature-major" if sample.before == "transposition" else "keep"
    command = [str(tool), "-", "--candidates", "1", "--gpu", gpu, "--layout", layout]
    command += ["--tokens", str(sample.layer.shape[0])]
    command += getattr(sample.layer, "flags", [])
    done = subprocess.run(
        command,
        input=sample.layer.text(sample.schedule),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    (product,) = json.loads(done.stdout)
    if product["before"] != sample.before:
        return None, f"ran with {sample.before!r} before it, not {product['before']!r}"
    product["given"]["work"]["overlaps"] = float(sample.overlaps)
    return product, ""


def count(measured, tool, gpu, formula):
    """Asks nm-compile about all samples, and says of which it knows nothing."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda one: ask(one, tool, gpu), measured))
    left_out = [
        (one, why) for one, (product, why) in zip(measured, answers) if not product
    ]
    for one, why in left_out[:5]:
        print(f"left out: {one.layer.name}: {why}", file=sys.stderr)
    if left_out:
        print(f"{len(left_out)} of {len(measured)} are left out", file=sys.stderr)
    pairs = [(one, answer) for one, (answer, _) in zip(measured, answers) if answer]
    products = [product for _, product in pairs]
    return Counted(
        [one for one, _ in pairs],
        np.array([[one["given"]["work"][n] for n in formula.work] for one in products]),
        [one["given"]["family"] for one in products],
        np.array(
            [[one["dense_work"][n] for n in formula.dense_work] for one in products]
        ),
        np.array([one["type"] != "f32" for one in products]),
    )


class Costs:
    """The costs that a fit moves, as logarithms of what they are multiplied by. The
    same cost of all families is moved at once for a derivative: each time depends on
    one family."""

    def __init__(self, formula, start, families):
        self.start, self.families = start, families
        self.places = [
            (family, name)
            for family in families
            for name in formula.product
            if start["families"][family][name] > 0
        ]
        self.places += [(None, name) for name in formula.shared]
        self.columns = {place: i for i, place in enumerate(self.places)}

    def value(self, place):
        family, name = place
        part = self.start["families"][family] if family else self.start["shared"]
        return part[name]

    def bounds(self):
        low, high = np.empty(len(self.places)), np.empty(len(self.places))
        for i, place in enumerate(self.places):
            least, most = LIMITS.get(place[1], (0, np.inf)) if place[0] else (0, np.inf)
            value, factor = self.value(place), MOST_OF_RATES.get(place[1], MOST)
            low[i] = np.log(max(1 / factor, least / value))
            high[i] = np.log(min(factor, most / value))
        return np.minimum(low, -1e-9), np.maximum(high, 1e-9)

    def apply(self, logs):
        costs = copy.deepcopy(self.start)
        for place, log in zip(self.places, logs):
            family, name = place
            part = costs["families"][family] if family else costs["shared"]
            part[name] = self.value(place) * float(np.exp(log))
        return costs


def fit(formula, counted, start):
    """The costs of families and those that they share, and of dense products."""
    costs = Costs(formula, start, counted.families)
    times = np.log([one.us for one in counted.samples])
    keys = {}
    layer = np.array([keys.setdefault(one.layer, len(keys)) for one in counted.samples])
    sizes = np.bincount(layer)
    family = np.array(counted.family)

    def center(values):
        means = np.apply_along_axis(lambda one: np.bincount(layer, one), 0, values)
        return values - (means.T / sizes).T[layer]

    def predict(logs):
        return np.log(formula.predict(counted, costs.apply(logs)))

    def residuals(logs):
        wrong = predict(logs) - times
        return np.concatenate([wrong, RELATIVE * center(wrong), MOVED * logs])

    def jacobian(logs):
        step, base = 1e-3, predict(logs)
        slopes = np.zeros((len(times), len(logs)))
        for name in {name for _, name in costs.places}:
            for places in (
                [place for place in costs.places if place[1] == name and place[0]],
                [place for place in costs.places if place == (None, name)],
            ):
                moved = logs.copy()
                columns = [costs.columns[place] for place in places]
                moved[columns] += step
                change = (predict(moved) - base) / step
                for place, column in zip(places, columns):
                    own = family == place[0] if place[0] else slice(None)
                    slopes[own, column] = change[own]
        return np.vstack([slopes, RELATIVE * center(slopes), MOVED * np.eye(len(logs))])

    found = least_squares(
        residuals,
        np.zeros(len(costs.places)),
        jacobian,
        costs.bounds(),
        loss="soft_l1",
        f_scale=ROBUST,
        max_nfev=60,
    )
    fitted = costs.apply(found.x)
    for name, on_cores in (("tensorCores", True), ("cudaCores", False)):
        fitted["dense"][name] = fit_dense(
            formula, counted, counted.on_cores == on_cores, start["dense"][name]
        )
    return rounded(fitted)


def rounded(costs):
    """With four digits each."""
    if isinstance(costs, dict):
        return {name: rounded(value) for name, value in costs.items()}
    return float(f"{costs:.4g}") if isinstance(costs, float) else costs


def fit_dense(formula, counted, which, start):
    """The costs of the vendor's dense products, of those samples in `which` that were
    measured beside one."""
    times = np.array([one.dense_us for one in counted.samples])
    which = which & (times > 0)
    work, times = counted.dense[which], np.log(times[which])
    names = [name for name in formula.dense_costs if start[name] > 0]

    def apply(logs):
        moved = {
            name: start[name] * float(np.exp(log)) for name, log in zip(names, logs)
        }
        return {**start, **moved}

    def residuals(logs):
        wrong = np.log(formula.predict_dense(work, apply(logs))) - times
        return np.concatenate([wrong, MOVED * logs])

    found = least_squares(
        residuals,
        np.zeros(len(names)),
        diff_step=1e-3,
        bounds=(-np.log(MOST), np.log(MOST)),
        loss="soft_l1",
        f_scale=ROBUST,
        max_nfev=60,
    )
    return apply(found.x)
