# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2:4 along the inputs of a linear layer: checked, and decoded from bit masks.

Weights are outputs x inputs, as frameworks store them. A window is four neighbouring
inputs of one output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, Packed
from ..reference import _bits
from . import canonical

ENCODING = Encoding(2, 4, dim=1)
NEARLY = 0.01  # share of windows; of elements that are half zeros at random, 5 / 16
CHUNK = 256  # outputs, so that what is made in between stays small


@dataclass(frozen=True)
class Pattern:
    """How far a weight is 2:4.

    windows:     of four inputs, over all outputs; the last one of an output may be
                 partial.
    violations:  windows with three or four elements other than zero; NaN is one.
    first:       output and window of the first violation.
    """

    windows: int
    violations: int
    first: Optional[Tuple[int, int]]

    @property
    def is_24(self) -> bool:
        return self.violations == 0

    @property
    def is_nearly_24(self) -> bool:
        return 0 < self.violations <= NEARLY * self.windows

    def __str__(self) -> str:
        if self.is_24:
            return "2:4"
        if not self.is_nearly_24:
            return "dense"
        assert self.first is not None
        return (
            f"nearly 2:4, but for {self.violations} of {self.windows} windows; the "
            f"first is window {self.first[1]} of output {self.first[0]}"
        )


def check(weight: np.ndarray, dtype: str) -> Pattern:
    """How far `weight` [outputs, inputs] is 2:4; bf16 and f8 as unsigned views."""
    bits, sign = _bits(weight, dtype, "weight")
    outputs, inputs = bits.shape
    windows = -(-inputs // 4)
    violations, first = 0, None
    for start in range(0, outputs, CHUNK):
        rows = bits[start : start + CHUNK]
        live = np.zeros((len(rows), windows * 4), bool)
        live[:, :inputs] = (rows & ~rows.dtype.type(sign)) != 0
        wrong = live.reshape(len(rows), windows, 4).sum(axis=2) > 2
        count = int(np.count_nonzero(wrong))
        if count and first is None:
            output, window = np.argwhere(wrong)[0]
            first = (start + int(output), int(window))
        violations += count
    return Pattern(outputs * windows, violations, first)


def pack(weight: np.ndarray, dtype: str) -> Packed:
    """What `encode` makes of a 2:4 weight [outputs, inputs], with less memory."""
    return canonical.encode(weight, ENCODING, dtype)


def decode_bitmask(
    shape: np.ndarray, compressed: np.ndarray, bitmask: np.ndarray
) -> np.ndarray:
    """The dense weight that the `sparse-24-bitmask` layout of compressed-tensors holds.

    shape:       two integers: outputs, inputs.
    compressed:  [outputs, inputs / 2] the kept elements of each output, in order.
    bitmask:     [outputs, ceil(inputs / 8)] bytes; input i of an output is bit i mod 8
                 of byte i / 8, the lowest bit first, and is set where it is kept.

    Raises EncodingError, which begins with the name of the part that is wrong, unless
    exactly two of every four inputs are kept.
    """
    if bitmask.dtype != np.uint8:
        raise EncodingError(f"bitmask is {bitmask.dtype}: legal is uint8")
    outputs, inputs = bitmask_sizes(shape, compressed.shape, bitmask.shape)
    dense = np.zeros((outputs, inputs), compressed.dtype)
    for start in range(0, outputs, CHUNK):
        rows = bitmask[start : start + CHUNK]
        bits = np.unpackbits(rows, axis=1, bitorder="little").astype(bool)
        _check_bits(bits, inputs, start)
        dense[start : start + CHUNK][bits[:, :inputs]] = compressed[
            start : start + CHUNK
        ].ravel()
    return dense


def bitmask_sizes(
    shape: np.ndarray, compressed: Tuple[int, ...], bitmask: Tuple[int, ...]
) -> Tuple[int, int]:
    """Outputs and inputs of a weight whose other parts have these shapes. Raises
    EncodingError as `decode_bitmask` does, where they do not fit each other."""
    if shape.dtype.kind not in "iu" or shape.size != 2:
        raise EncodingError(
            f"shape is {shape.size} of {shape.dtype}: legal is two integers"
        )
    outputs, inputs = (int(size) for size in shape.ravel())
    if outputs < 1 or inputs < 1 or inputs % 4:
        raise EncodingError(
            f"shape is {[outputs, inputs]}: legal is [outputs, inputs] from 1 up with "
            "inputs a multiple of 4"
        )
    legal = {
        "compressed": (compressed, (outputs, inputs // 2)),
        "bitmask": (bitmask, (outputs, -(-inputs // 8))),
    }
    for name, (found, sizes) in legal.items():
        if found != sizes:
            raise EncodingError(
                f"{name} has shape {list(found)}: legal is {list(sizes)} for "
                f"{outputs} x {inputs}"
            )
    return outputs, inputs


def _check_bits(bits: np.ndarray, inputs: int, start: int) -> None:
    """`bits` [outputs from `start` on, whole bytes] keep two of every four inputs."""
    counts = bits[:, :inputs].reshape(len(bits), inputs // 4, 4).sum(axis=2)
    if (counts != 2).any():
        output, window = np.argwhere(counts != 2)[0]
        raise EncodingError(
            f"bitmask has {counts[output, window]} bits in window {window} of output "
            f"{start + output}: legal is 2 of 4"
        )
    if bits[:, inputs:].any():
        output = np.argwhere(bits[:, inputs:].any(axis=1))[0][0]
        raise EncodingError(
            f"bitmask has bits past input {inputs} in output {start + output}: legal "
            "is 0"
        )
