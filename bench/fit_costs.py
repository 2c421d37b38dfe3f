# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of the model that make its predictions fit measured times."""

import ctypes
import dataclasses

import numpy as np

# The columns of the tables in lib/Products: (name, lowest, highest). Shares beyond
# these have no meaning, and what no time decides must not run away.
COSTS = [
    ("mathShare", 0.6, 1.1),
    ("l2Share", 0.3, 2.0),
    ("shown", 0.01, 0.7),
    ("step", 0.01e-6, 0.5e-6),
    ("copy", 8e-9, 100e-9),
    ("latency", 0.4e-6, 2.5e-6),
    ("tile", 0.1e-6, 5e-6),
    ("written", 0.05, 3.0),
    ("index", 0.05e-9, 2e-9),
]

# Those that all families share.
SHARED = [
    ("launch", 0.5e-6, 4e-6),
    ("split", 0.1e-6, 20e-6),
    ("stream", 1e-6, 20e-6),
    ("apart", 0.5, 2.0),
    ("overlap", 0.1e-6, 2e-6),
    ("init", 0.2, 5.0),
    ("apply", 0.2, 3.0),
    ("scattered", 0.02e-9, 2e-9),
    ("transposition", 1e-6, 8e-6),
    ("rowCopy", 1e-6, 8e-6),
]

# Errors beyond this count as their size, and no more as their square.
ROBUST = 0.1
# Weight of errors against those of the other schedules of a layer, which decide what
# is chosen, and of costs that move.
RELATIVE, MOVED = 1.5, 0.02


@dataclasses.dataclass
class Parameter:
    """A cost of some families, as the logarithm of what it is multiplied by."""

    families: list
    name: str
    lowest: float
    highest: float
    start: float

    @property
    def bounds(self):
        return np.log(self.lowest / self.start), np.log(self.highest / self.start)


class Predictor:
    """All samples at once, by the formula in a library."""

    def __init__(self, samples):
        formula = samples[0].formula
        self.library = formula.library
        terms, self.family_names, self.shared_names = formula.names
        self.families = sorted({sample.family for sample in samples})
        self.index = np.array([self.families.index(s.family) for s in samples])
        self.terms = np.array([[s.model["terms"][n] for n in terms] for s in samples])
        self.terms = np.ascontiguousarray(self.terms, dtype=float)

    def __call__(self, costs):
        """Microseconds."""
        table = np.array(
            [[costs[f][name] for name in self.family_names] for f in self.families]
        )
        rows = np.ascontiguousarray(table[self.index], dtype=float)
        anyone = costs[self.families[0]]
        shared = np.array([anyone[name] for name in self.shared_names], dtype=float)
        seconds = np.empty(len(rows))
        pointers = [
            array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            for array in (self.terms, rows, shared, seconds)
        ]
        self.library.nmsCombineAllTerms(len(rows), *pointers)
        return seconds * 1e6


def parameters(start):
    found = [
        Parameter([family], name, low, high, min(high, max(low, start[family][name])))
        for family in start
        for name, low, high in COSTS
    ]
    anyone = next(iter(start.values()))
    return found + [
        Parameter(list(start), name, low, high, min(high, max(low, anyone[name])))
        for name, low, high in SHARED
    ]


def apply(params, logs, start):
    costs = {family: dict(values) for family, values in start.items()}
    for parameter, log in zip(params, logs):
        for family in parameter.families:
            costs[family][parameter.name] = parameter.start * float(np.exp(log))
    return costs


def fit(samples, start):
    """The costs for which the sum of robust squares is least, by Gauss-Newton steps
    in the logarithms of costs and times. Times of layers that nobody drew count against
    those of the same layer alone, beside layers that were drawn."""
    params, predict = parameters(start), Predictor(samples)
    logs_of_times = np.log([sample.us for sample in samples])
    keys = {}
    layer = np.array([keys.setdefault((s.layer, s.source), len(keys)) for s in samples])
    sizes = np.bincount(layer)
    drawn = np.array([sample.drawn for sample in samples])
    counts = drawn | ~drawn.any()
    low, high = np.array([p.bounds for p in params]).T

    def residuals(logs):
        wrong = np.log(predict(apply(params, logs, start))) - logs_of_times
        relative = wrong - (np.bincount(layer, wrong) / sizes)[layer]
        return np.concatenate([wrong * counts, RELATIVE * relative, MOVED * logs])

    def total(found):
        return np.sum(np.sqrt(1 + (found / ROBUST) ** 2) - 1)

    logs, damping = np.zeros(len(params)), 1e-2
    found = residuals(logs)
    for _ in range(200):
        columns = []
        for i in range(len(params)):
            moved = logs.copy()
            moved[i] += 1e-4 if logs[i] < high[i] - 1e-4 else -1e-4
            columns.append((residuals(moved) - found) / (moved[i] - logs[i]))
        slopes = np.array(columns).T
        weights = 1 / np.sqrt(1 + (found / ROBUST) ** 2)
        left = slopes.T @ (weights[:, None] * slopes)
        right = -slopes.T @ (weights * found)
        before = total(found)
        while damping < 1e6:
            step = np.linalg.solve(left + damping * np.diag(np.diag(left)), right)
            trial = np.clip(logs + step, low, high)
            values = residuals(trial)
            if total(values) < before:
                break
            damping *= 4
        else:
            break
        logs, found, damping = trial, values, damping / 3
        if before - total(found) < 1e-6 * before:
            break
    return apply(params, logs, start)
