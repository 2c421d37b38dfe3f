# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed values rounded to elements of 8 bits with scales: those of
`PackedWeight.quantize` to the bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterator, Mapping, Optional, Tuple

import numpy as np

from ...encoding import EncodingError
from ..packed_file import SCALE
from ..scales import from_f32, numpy_type, to_elements, to_f32, to_scale

NUMBERS = 1 << 16  # elements that are numbers of f32 together


@dataclass
class RoundingError:
    """How far elements are from what they are rounded of: sums over these."""

    energy: float = 0.0
    off: float = 0.0

    def add(self, other: "RoundingError") -> None:
        self.energy += other.energy
        self.off += other.off

    @property
    def relative(self) -> float:
        """The norm of the difference, relative to that of the values."""
        return math.sqrt(self.off / self.energy) if self.energy else 0.0


@dataclass(frozen=True)
class Rounding:
    """How values are rounded.

    elements:  as in MLIR.
    dtype:     of the values.
    scales:    "output" or "tensor".
    largest:   with "tensor", that of a weight which comes in parts.
    """

    elements: str
    dtype: str
    scales: str
    largest: Optional[np.float32] = None

    def apply(
        self, components: Mapping[str, np.ndarray], outputs: int, first: int = 0
    ) -> Tuple[Dict[str, np.ndarray], RoundingError]:
        """The components of a weight, or of some whole panels of it, with elements and
        with scales in the order of the outputs.

        first:  of its outputs in the weight.

        Raises EncodingError where a value is not finite."""
        values, perm = components["values"], components.get("perm")
        scale = to_scale(self._largest(values, outputs, perm, first), self.elements)
        columns = np.ones(values.shape[1], np.float32)  # +0 past the last output
        columns[:outputs] = scale if perm is None else scale[perm]
        found = np.empty(values.shape, numpy_type(self.elements))
        error = RoundingError()
        for rows, numbers in _steps(values, self.dtype):
            found[rows] = to_elements(numbers / columns, self.elements)
            stood = from_f32(to_f32(found[rows], self.elements) * columns, self.dtype)
            off = to_f32(stood, self.dtype) - numbers
            error.add(RoundingError(_energy(numbers), _energy(off)))
        return {**components, "values": found, SCALE: scale}, error

    def _largest(
        self, values: np.ndarray, outputs: int, perm: Optional[np.ndarray], first: int
    ) -> np.ndarray:
        """By which each output is scaled."""
        found = largest_values(values, self.dtype)[:outputs]
        if perm is not None:
            ordered, found = found, np.empty_like(found)
            found[perm] = ordered
        wrong = np.flatnonzero(~np.isfinite(found))
        if len(wrong):
            raise EncodingError(
                f"output {first + wrong[0]} has an infinity or a NaN: legal for "
                "elements of 8 bits are finite numbers"
            )
        if self.scales == "output":
            return found
        most = found.max(initial=0) if self.largest is None else self.largest
        return np.full(outputs, most, np.float32)


def largest_values(values: np.ndarray, dtype: str) -> np.ndarray:
    """The largest magnitude of each column, f32."""
    found = np.zeros(values.shape[1], np.float32)
    for _, numbers in _steps(values, dtype):
        np.maximum(found, np.abs(numbers).max(0, initial=0), out=found)
    return found


def _steps(values: np.ndarray, dtype: str) -> Iterator[Tuple[slice, np.ndarray]]:
    """Some rows at a time, as numbers of f32."""
    step = max(NUMBERS // max(values.shape[1], 1), 1)
    for first in range(0, len(values), step):
        rows = slice(first, first + step)
        yield rows, to_f32(values[rows], dtype)


def _energy(numbers: np.ndarray) -> float:
    return float(np.square(numbers, dtype=np.float64).sum())
