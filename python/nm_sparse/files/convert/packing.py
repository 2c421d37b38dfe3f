# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer pruned and packed, some outputs at a time: memory holds what is packed, and
a part of the dense weight."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Tuple

import numpy as np

from ...encoding import Encoding, EncodingError, index_dtype, packed_shapes
from ...packing import canonical, two_four
from ...pruning.prune import prune
from ..scales import numpy_type, to_f32
from ..sparse_config import encoding_text
from ..tensor_file import CheckpointError

PART = 1 << 19  # bytes of a dense weight that are looked at together
NUMBERS = 1 << 16  # elements that are numbers of f32 together
THREADS = 2  # each of which has a part
SLICES = 32  # in which a weight is cut at least, as far as its panels allow


@dataclass
class Fidelity:
    """How much of a weight is kept: sums over its elements."""

    before: float = 0.0
    after: float = 0.0
    energy: float = 0.0
    lost: float = 0.0

    @staticmethod
    def of(before: np.ndarray, after: np.ndarray, dtype: str) -> "Fidelity":
        """That of a part of a weight."""
        total = Fidelity()
        step = max(NUMBERS // max(before.shape[1], 1), 1)
        for first in range(0, len(before), step):
            old, new = (to_f32(w[first : first + step], dtype) for w in (before, after))
            with np.errstate(over="ignore", invalid="ignore"):
                total.add(
                    Fidelity(
                        float(np.abs(old).sum()),
                        float(np.abs(new).sum()),
                        float(np.square(old).sum()),
                        float(np.square(old - new).sum()),
                    )
                )
        return total

    def add(self, other: "Fidelity") -> None:
        self.before += other.before
        self.after += other.after
        self.energy += other.energy
        self.lost += other.lost

    @property
    def kept(self) -> float:
        """The share of the sum of magnitudes that is left, 0 to 1."""
        return self.after / self.before if self.before else 1.0

    @property
    def error(self) -> float:
        """The norm of what is lost, relative to that of the weight."""
        return math.sqrt(self.lost / self.energy) if self.energy else 0.0


def parts(rows: Any, e: Encoding, itemsize: int) -> Iterator[Tuple[int, int]]:
    """Outputs, from and to, that are packed on their own: whole panels."""
    outputs, inputs = rows.shape
    if e.is_shuffled:  # whose panels are made of outputs from everywhere
        yield 0, outputs
        return
    unit = math.lcm(e.block[1], rows.multiple)
    size = min(PART, max(outputs * inputs * itemsize // SLICES, 1 << 16))
    step = max(size // max(inputs * itemsize * unit, 1), 1) * unit
    for first in range(0, outputs, step):
        yield first, min(first + step, outputs)


def pack_rows(
    rows: Any, e: Encoding, dtype: str, is_pruned: bool
) -> Tuple[Dict[str, np.ndarray], Fidelity]:
    """The components of a weight, and what is kept of it.

    rows:       a `WeightRows`.
    dtype:      of the packed values.
    is_pruned:  whether the weight is pruned; else it must have the pattern.

    Raises CheckpointError, naming the weight, where it does not fit.
    """
    itemsize = numpy_type(dtype).itemsize
    components = _room(e, rows.shape, dtype)
    widths = dict(zip(("index", "inner_index"), (one.block[1] for one in e.levels)))
    widths["values"] = 1

    def pack(bounds: Tuple[int, int]) -> Fidelity:
        first, stop = bounds
        dense = rows.read(first, stop, dtype)
        try:
            kept = prune(dense, e, dtype) if is_pruned else dense
            packed = canonical.encode(kept, e, dtype)
        except EncodingError as error:
            raise CheckpointError(
                f"{rows.checkpoint.path}: weight {rows.name!r}: {error}"
            ) from None
        for name, part in packed.components.items():
            if e.is_shuffled:  # it is the whole one
                components[name] = part
            else:
                # One column stands for so many outputs.
                start = first // widths[name]
                components[name][:, start : start + part.shape[1]] = part
        return Fidelity.of(dense, kept, dtype)

    fidelity = Fidelity()
    itemsize = numpy_type(dtype).itemsize
    with ThreadPoolExecutor(THREADS) as pool:
        for one in pool.map(pack, parts(rows, e, itemsize)):
            fidelity.add(one)
    return components, fidelity


def _room(e: Encoding, shape: Tuple[int, int], dtype: str) -> Dict[str, np.ndarray]:
    types = {"values": numpy_type(dtype), "perm": np.dtype(np.uint32)}
    for name, level in zip(("index", "inner_index"), e.levels):
        types[name] = index_dtype(level.m)
    shapes = packed_shapes(e, shape)
    return {name: np.empty(size, types[name]) for name, size in shapes.items()}


def obeys(rows: Any, e: Encoding, dtype: str) -> str:
    """Why a weight has not the pattern; "" where it has. `rows` is a `WeightRows`."""
    windows = violations = 0
    first_wrong = None
    for first, stop in parts(rows, e, numpy_type(dtype).itemsize):
        dense = rows.read(first, stop, dtype)
        if e == two_four.ENCODING:
            found = two_four.check(dense, dtype)
            windows, violations = windows + found.windows, violations + found.violations
            if found.first is not None and first_wrong is None:
                first_wrong = first + found.first[0], found.first[1]
            continue
        try:
            canonical.encode(dense, e, dtype)
        except EncodingError:
            return f"its zeros do not have the pattern {encoding_text(e)}"
    pattern = two_four.Pattern(windows, violations, first_wrong)
    return "" if pattern.is_24 else str(pattern)
