# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer pruned, packed and perhaps rounded, some outputs at a time: memory holds
what is packed, and a part of the dense weight."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from ...encoding import Encoding, EncodingError, index_dtype, packed_shapes
from ...packing import canonical, two_four
from ...pruning.prune import prune
from ..packed_file import SCALE
from ..scales import numpy_type, to_f32
from ..sparse_config import encoding_text
from ..tensor_file import CheckpointError
from .rounding import NUMBERS, Rounding, RoundingError, largest_values

PART = 1 << 19  # bytes of a dense weight that are looked at together
THREADS = 2  # each of which has a part
SLICES = 32  # in which a weight is cut at least, as far as its panels allow


@dataclass
class Fidelity:
    """How much of a weight is kept: sums over its elements.

    rounding:  of what is kept.
    """

    before: float = 0.0
    after: float = 0.0
    energy: float = 0.0
    lost: float = 0.0
    rounding: RoundingError = field(default_factory=RoundingError)

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
        self.rounding.add(other.rounding)

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
    rows: Any,
    e: Encoding,
    dtype: str,
    is_pruned: bool,
    rounding: Optional[Rounding] = None,
) -> Tuple[Dict[str, np.ndarray], Fidelity]:
    """The components of a weight, and what is kept of it.

    rows:       a `WeightRows`.
    dtype:      of the packed values.
    is_pruned:  whether the weight is pruned; else it must have the pattern.
    rounding:   of the packed values; None: they stay as they are.

    Raises CheckpointError, naming the weight, where it does not fit.
    """
    elements = None if rounding is None else rounding.elements
    components = _room(e, rows.shape, dtype, elements)
    widths = dict(zip(("index", "inner_index"), (one.block[1] for one in e.levels)))
    if rounding is not None and rounding.scales == "tensor" and not e.is_shuffled:
        # All of the weight has to be seen before the first part is rounded.
        largest = np.float32(0)
        for part in _pruned_parts(
            rows, e, dtype, is_pruned, lambda _, __, kept: _largest(kept, dtype)
        ):
            largest = np.maximum(largest, part)
        rounding = replace(rounding, largest=largest)

    def put(first: int, dense: np.ndarray, kept: np.ndarray) -> Fidelity:
        found = canonical.encode(kept, e, dtype).components
        fidelity = Fidelity.of(dense, kept, dtype)
        if rounding is not None:
            found, fidelity.rounding = rounding.apply(found, len(dense), first)
        for name, part in found.items():
            if e.is_shuffled:  # it is the whole one
                components[name] = part
            else:
                # One column stands for so many outputs.
                start = first // widths.get(name, 1)
                components[name][..., start : start + part.shape[-1]] = part
        return fidelity

    fidelity = Fidelity()
    for one in _pruned_parts(rows, e, dtype, is_pruned, put):
        fidelity.add(one)
    return components, fidelity


def _pruned_parts(
    rows: Any, e: Encoding, dtype: str, is_pruned: bool, use: Callable[..., Any]
) -> Iterator[Any]:
    """What `use` returns of each part: its first output, as it is, and pruned.

    Raises as `pack_rows` does."""

    def prune_part(bounds: Tuple[int, int]) -> Any:
        first, stop = bounds
        dense = rows.read(first, stop, dtype)
        try:
            return use(first, dense, prune(dense, e, dtype) if is_pruned else dense)
        except EncodingError as error:
            raise CheckpointError(
                f"{rows.checkpoint.path}: weight {rows.name!r}: {error}"
            ) from None

    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(prune_part, parts(rows, e, numpy_type(dtype).itemsize))


def _largest(kept: np.ndarray, dtype: str) -> np.float32:
    return largest_values(kept, dtype).max(initial=0)


def _room(
    e: Encoding, shape: Tuple[int, int], dtype: str, elements: Optional[str]
) -> Dict[str, np.ndarray]:
    types = {"values": numpy_type(elements or dtype), "perm": np.dtype(np.uint32)}
    for name, level in zip(("index", "inner_index"), e.levels):
        types[name] = index_dtype(level.m)
    shapes: Dict[str, Tuple[int, ...]] = dict(packed_shapes(e, shape))
    if elements is not None:
        types[SCALE], shapes[SCALE] = np.dtype(np.float32), shape[:1]
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
