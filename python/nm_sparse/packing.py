# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs large weights into canonical form, a few panels at a time.

The components are those of `reference.encode`, bit by bit, and so are the errors.
"""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import numpy as np

from . import order, reference
from .encoding import Encoding, Level, Packed, index_dtype, packed_shapes
from .reference import _bits, _default_dtype, _places_of_errors, _too_many
from .selection import best, chunks, outputs_first
from .shuffled import _places, _refuse_perm, _stored

_Fault = Tuple[int, int, int, int]  # batch entry, window, panel, nonzero blocks


def encode(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    perm: Optional[np.ndarray] = None,
) -> Packed:
    """What `nm_sparse.encode` returns of the same arguments, sooner and with less
    memory. Raises EncodingError with the same text, too."""
    e, dtype = encoding, dtype or _default_dtype(weight)
    if not e.is_shuffled:
        _refuse_perm(e, perm)
        return _encode(weight, e, dtype, "")
    places, note = _places(weight, e, dtype, perm)
    packed = _encode(order.put(weight, e, places), e.packed, dtype, note)
    components = {**packed.components, "perm": _stored(places, weight)}
    return Packed(components, e, weight.shape, dtype)


def _encode(weight: np.ndarray, e: Encoding, dtype: str, note: str) -> Packed:
    if e.is_free:
        return reference.encode(weight, e, dtype, note)
    bits, sign = _bits(weight, dtype, "weight")
    rows = outputs_first(bits, e)
    types = [bits.dtype, *(index_dtype(level.m) for level in e.levels)]
    shapes = packed_shapes(e, weight.shape)
    components = {n: np.zeros(shapes[n], t) for n, t in zip(shapes, types)}
    # As [batch, along the outputs, along the contraction], like the weight.
    targets = [
        part.reshape((len(rows),) + part.shape[-2:]).swapaxes(1, 2)
        for part in components.values()
    ]
    faults: Dict[int, _Fault] = {}  # the first of each level
    for entry, (outputs, steps), part in chunks(rows, e):
        window = steps.start // (e.m * e.block[0])
        for number, level in enumerate(e.levels):
            part, positions, crowded = _pack_level(part, level, sign)
            panel = outputs.start // level.block[1]
            if crowded is not None:
                w, p, count = crowded
                fault = (entry, window + w, panel + p, count)
                faults[number] = min(faults.get(number, fault), fault)
                break
            _write(targets[number + 1][entry], positions, panel, window * level.n)
        if not faults:
            inner = e.levels[-1]
            first = window * inner.n * inner.block[0]
            _write(targets[0][entry], part, outputs.start, first)
    if faults:
        number = min(faults)
        where = _places_of_errors(e, note, weight.ndim == 3)[number]
        raise _too_many(e.levels[number], where, faults[number][:3], faults[number][3])
    components["values"] = components["values"].view(weight.dtype)
    return Packed(components, e, weight.shape, dtype)


def _write(target: np.ndarray, part: np.ndarray, first: int, start: int) -> None:
    """Puts `part` where its first row and first column belong."""
    target[first : first + part.shape[0], start : start + part.shape[1]] = part


def _pack_level(
    part: np.ndarray, level: Level, sign: int
) -> Tuple[np.ndarray, np.ndarray, Optional[Tuple[int, int, int]]]:
    """Packs whole panels and windows [outputs, contraction], given by their bits.

    Returns values [outputs, W * n * bk], positions [panels, W * n], and window, panel
    and count of the first window with more than n live blocks, if there is one.
    """
    (outputs, length), (bk, bn), n, m = part.shape, level.block, level.n, level.m
    panels, blocks = outputs // bn, length // bk
    # An element of each block has a bit where the block has one.
    ones = part.reshape(panels, bn, blocks, bk)
    ones = np.bitwise_or.reduce(ones, axis=1) if bn > 1 else ones[:, 0]
    ones = np.bitwise_or.reduce(ones, axis=2) if bk > 1 else ones[:, :, 0]
    ones = ones.reshape(panels, blocks // m, m)
    live = (ones & ~part.dtype.type(sign)) != 0
    counts = live.sum(axis=2, dtype=np.int32)
    if (counts > n).any():
        window, panel = np.argwhere((counts > n).T)[0]
        crowded = (int(window), int(panel), int(counts[panel, window]))
        return part, counts, crowded
    # Live blocks first, then those with a -0, then the lowest positions.
    kept = best(live.view(np.uint8) + (ones != 0), n).reshape(panels, blocks)
    rows = np.flatnonzero(kept).reshape(panels, -1)
    rows -= np.arange(panels)[:, None] * blocks
    positions = rows % m
    if bn == bk == 1:
        return part[kept].reshape(outputs, -1), positions, None
    values = np.take_along_axis(
        part.reshape(panels, bn, blocks, bk), rows[:, None, :, None], axis=2
    )
    return values.reshape(outputs, -1), positions, None
