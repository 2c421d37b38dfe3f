# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which elements pruning keeps, a few panels at a time.

The choice is that of `reference.py` to the last bit: the same sums in the same order.
Here it is made for large weights. What lies in between fits in a cache, and elements
that are kept one by one are compared as integers, which are in the order of their
squares.

All arrays are outputs x contraction, [batch, N, K], whatever `dim` is.
"""

from __future__ import annotations

from itertools import product
from typing import Dict, Iterator, Optional, Tuple

import numpy as np

from .encoding import Encoding, EncodingError, Level, extents
from .reference import _bits, _numbers, _sum

CHUNK = 1 << 18  # elements, so that what is made of them stays in a cache
WIDE = 512  # outputs, which fill lines of a cache
LARGEST_RANKED = 64  # blocks of a window that are compared in pairs
# Bits of infinity; NaN has more, and counts as infinite. f8E4M3FN has only NaN.
_INFINITY: Dict[str, int] = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}
_INFINITY.update(f8E5M2=0x7C, f8E4M3FN=0x7F)
Place = Tuple[slice, slice]  # outputs, steps of the contraction


def outputs_first(array: np.ndarray, e: Encoding) -> np.ndarray:
    """A weight, or what is of its shape, as [batch, N, K]; a view."""
    batch, k, outputs = extents(e, array.shape)
    turned = array if e.dim == array.ndim - 1 else array.swapaxes(-1, -2)
    return turned[None] if array.ndim == 2 else turned


def chunks(rows: np.ndarray, e: Encoding) -> Iterator[Tuple[int, Place, np.ndarray]]:
    """Part after part of [batch, N, K], each of whole panels and windows: (batch entry,
    which outputs, which steps of the contraction, their elements).

    The elements are contiguous, with zeros behind the end of the weight.
    """
    (batch, outputs, k), (bk, bn) = rows.shape, e.block
    window = bk * (e.m or 1)
    whole = -(-k // window) * window
    # Where outputs are next to each other, a part has many of them.
    least = WIDE if rows.strides[2] > rows.strides[1] else 1
    tall = max(CHUNK // max(whole * bn, 1), -(-least // bn), 1) * bn
    wide = max(CHUNK // (tall * window), 1) * window
    for entry, first, start in product(
        range(batch), range(0, outputs, tall), range(0, k, wide)
    ):
        part = rows[entry, first : first + tall, start : start + wide]
        (high, length) = part.shape
        padding = ((0, -high % bn), (0, -length % window))
        part = np.pad(part, padding) if any(map(any, padding)) else part
        where = (slice(first, first + high), slice(start, start + length))
        yield entry, where, np.ascontiguousarray(part)


def squares(part: np.ndarray, dtype: str) -> np.ndarray:
    """Of elements that are given by their bits, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = _numbers(part, dtype)
        return np.multiply(numbers, numbers, out=numbers)


def block_scores(terms: np.ndarray, block: Tuple[int, int]) -> np.ndarray:
    """The sum of each block of `terms` [outputs, contraction], added up along the
    contraction and, in each step of it, the outputs; infinite where it is a NaN.

    Returns [outputs / bn, contraction / bk].
    """
    (outputs, length), (bk, bn) = terms.shape, block
    cut = terms.reshape(outputs // bn, bn, length // bk, bk)
    if bk * bn > 4096:  # too few blocks at once to be fast
        return _sum(cut, 3, 1)
    total = cut[:, 0, :, 0].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(bk):
            for j in range(bn):
                if i or j:
                    total += cut[:, j, :, i]
    np.copyto(total, np.inf, where=np.isnan(total))
    return total


def best(keys: np.ndarray, n: int) -> np.ndarray:
    """Which are the n largest along the last axis; of equals the first ones. `keys` are
    unsigned integers, or floats that are no NaN."""
    m = keys.shape[-1]
    if n >= m:
        return np.ones(keys.shape, bool)
    if m > LARGEST_RANKED:
        backwards = ~keys if keys.dtype.kind == "u" else -keys
        order = np.argsort(backwards, axis=-1, kind="stable")[..., :n]
        result = np.zeros(keys.shape, bool)
        np.put_along_axis(result, order, True, axis=-1)
        return result
    # How many come before each: of the later ones those that are larger, and of the
    # earlier ones those that are as large, too.
    columns = np.ascontiguousarray(keys.reshape(-1, m).T)
    before = np.empty(columns.shape, np.uint8)
    before[:] = np.arange(m - 1, -1, -1, dtype=np.uint8)[:, None]
    for at in range(1, m):
        wins = columns[:at] >= columns[at]
        before[at] += np.add.reduce(wins, axis=0, dtype=np.uint8)
        before[:at] -= wins
    return np.ascontiguousarray((before < n).T).reshape(keys.shape)


def magnitudes(part: np.ndarray, dtype: str) -> np.ndarray:
    """Keys for `best` in the order of the squares of elements, given by their bits."""
    if dtype == "f64":  # small ones have a square of 0, and are alike
        terms = squares(part, dtype)
        return np.where(np.isnan(terms), np.inf, terms)
    if dtype == "i8":
        return np.where(part > 127, np.uint8(0) - part, part)
    sign = part.dtype.type(1 << (8 * part.itemsize - 1))
    return np.minimum(part & ~sign, part.dtype.type(_INFINITY[dtype]))


def _one_level(part: np.ndarray, dtype: str, level: Level) -> np.ndarray:
    """Which elements of a chunk stay."""
    (outputs, length), (bk, bn) = part.shape, level.block
    if level.block == (1, 1):
        keys = magnitudes(part, dtype)
    else:
        keys = block_scores(squares(part, dtype), level.block)
    stays = best(keys.reshape(outputs // bn, -1, level.m), level.n)
    return _spread(stays.reshape(outputs // bn, length // bk), level.block)


def _two_levels(part: np.ndarray, dtype: str, e: Encoding) -> np.ndarray:
    """Which elements of a chunk stay; docs/Encoding.md, section 3, says why."""
    assert e.inner is not None
    (outputs, length), (bk, bn), (ik, jn) = part.shape, e.block, e.inner.block
    strips = e.m * bk // ik  # of a window and inner panel
    scores = block_scores(squares(part, dtype), (ik, jn))
    scores = scores.reshape(outputs // jn, -1, strips)
    keys = magnitudes(part, dtype).reshape(scores.shape) if ik * jn == 1 else scores
    counted = np.where(best(keys, e.inner.n), scores, 0)
    counted = counted.reshape(outputs // jn, length // ik)
    outer = best(
        block_scores(counted, (bk // ik, bn // jn)).reshape(outputs // bn, -1, e.m),
        e.n,
    ).reshape(outputs // bn, length // bk)
    outer = _spread(outer, (bk // ik, bn // jn)).reshape(scores.shape)
    left = np.where(outer, keys, keys.dtype.type(0))
    chosen = best(left, e.inner.n) & (left > 0)
    return _spread(chosen.reshape(outputs // jn, length // ik), (ik, jn))


def _spread(blocks: np.ndarray, block: Tuple[int, int]) -> np.ndarray:
    """[outputs, contraction] of what is said of blocks."""
    bk, bn = block
    along = blocks.repeat(bk, axis=1) if bk > 1 else blocks
    return along.repeat(bn, axis=0) if bn > 1 else along


def _free_blocks(
    rows: np.ndarray, dtype: str, e: Encoding, density: float
) -> np.ndarray:
    """Which blocks of the whole weight stay, [batch, panels, block rows]."""
    if not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")
    (batch, outputs, k), (bk, bn) = rows.shape, e.block
    scores = np.empty((batch, -(-outputs // bn), -(-k // bk)))
    for entry, where, part in chunks(rows, e):
        found = block_scores(squares(part, dtype), e.block)
        scores[(entry, *_in_blocks(where, e))] = found
    count, listed = int(np.floor(density * scores.size + 0.5)), scores.reshape(-1)
    stays = np.zeros(listed.size, bool)
    if count:
        least = np.partition(listed, listed.size - count)[listed.size - count]
        np.greater(listed, least, out=stays)
        equal = np.flatnonzero(listed == least)
        stays[equal[: count - np.count_nonzero(stays)]] = True
    return stays.reshape(scores.shape)


def _in_blocks(where: Place, e: Encoding) -> Place:
    """Which panels and rows of blocks these outputs and steps are."""
    outputs, steps = where
    (bk, bn) = e.block
    return (
        slice(outputs.start // bn, -(-outputs.stop // bn)),
        slice(steps.start // bk, -(-steps.stop // bk)),
    )


def kept(
    weight: np.ndarray, dtype: str, e: Encoding, density: Optional[float] = None
) -> Iterator[Tuple[int, Place, np.ndarray]]:
    """Which elements pruning of `weight`, of order identity, keeps: (batch entry, which
    outputs and steps of the contraction, mask of these), one part after the other.

    Raises EncodingError when shape, dim or density do not fit.
    """
    rows = outputs_first(_bits(weight, dtype, "weight")[0], e)
    is_turned = rows.strides[2] > rows.strides[1]
    free = None if density is None else _free_blocks(rows, dtype, e, density)
    for entry, where, part in chunks(rows, e):
        if free is not None:
            mask = _spread(free[(entry, *_in_blocks(where, e))], e.block)
        elif e.inner is None:
            mask = _one_level(part, dtype, e)
        else:
            mask = _two_levels(part, dtype, e)
        outputs, steps = where
        high, length = outputs.stop - outputs.start, steps.stop - steps.start
        mask = mask[:high, :length]
        # In the order of the weight's elements, for whoever uses both.
        yield entry, where, np.asfortranarray(mask) if is_turned else mask
