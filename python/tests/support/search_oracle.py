# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which outputs of a weight share a panel: the search of section 3 of docs/Encoding.md,
in numpy, to compare the library (lib/Packing/Order) with.

Importance is whole numbers of so few bits that every sum of it is exact in float64.
So the choice depends neither on the order of sums nor on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional

import numpy as np

from nm_sparse import Encoding, EncodingError, reference
from nm_sparse.encoding import extents, free, order
from nm_sparse.packing import shuffled
from nm_sparse.packing.shuffled import _places, _stored
from nm_sparse.reference import _bits, _check_density, _default_dtype, _numbers, _turn

Progress = Callable[[int, int], None]  # steps done, and of how many

# Elements that the first stage reads at most, and products of the second one.
READ_LIMIT, MULTIPLY_LIMIT = 1 << 33, 1 << 37
LEAST_ROWS, MOST_PASSES, MOST_ROUNDS = 64, 10, 16


@dataclass(frozen=True)
class _Keep:
    """What panels keep of rows of blocks: n of every m, or, with n = 0, a share."""

    n: int
    m: int
    density: float = 0.0

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        """Which rows of each panel stay, of sums [panels, rows]; whole windows."""
        if self.n:
            windows = sums.reshape(len(sums), -1, self.m)
            best = np.argsort(-windows, axis=2, kind="stable")[:, :, : self.n]
            kept = np.zeros(windows.shape, bool)
            np.put_along_axis(kept, best, True, axis=2)
        else:
            count = int(np.floor(self.density * sums.size + 0.5))
            kept = np.zeros(sums.size, bool)
            kept[np.argsort(-sums.reshape(-1), kind="stable")[:count]] = True
        return kept.reshape(sums.shape)


def find_order(
    squares: np.ndarray,
    e: Encoding,
    density: Optional[float],
    seed: int,
    progress: Optional[Progress],
) -> np.ndarray:
    """The order of outputs of a weight, of the squares of its elements [K, N]."""
    level = e.levels[-1]
    strips = _quantize(_sum_rows(squares.T, level.block[0]))
    if e.inner is None:
        keep = _Keep(e.n, e.m or 1, density or 0.0)
        panels = _search(strips, keep, e.block[1], seed, progress)
        return np.concatenate(panels) if panels else np.zeros(0, np.int64)
    # A strip counts when its output would keep it if every block stayed.
    inner, per_block = e.inner, e.block[0] // level.block[0]
    strips = _pad(strips, e.m * per_block)
    counted = strips * _Keep(inner.n, e.m * per_block)(strips)
    blocks = counted.reshape(len(strips), -1, per_block).sum(axis=2)
    keep = _Keep(e.n, e.m)
    panels = _search(blocks, keep, e.block[1], seed, progress)
    if inner.block[1] == 1:
        return np.concatenate(panels) if panels else np.zeros(0, np.int64)
    order: List[np.ndarray] = []
    for panel in panels:
        kept = keep(blocks[panel].sum(axis=0)[None])[0].repeat(per_block)
        own = strips[np.ix_(panel, kept)]
        parts = _search(own, _Keep(inner.n, inner.m), inner.block[1], seed, None)
        order += [panel[part] for part in parts]
    return np.concatenate(order)


def _sum_rows(squares: np.ndarray, rows: int) -> np.ndarray:
    """[N, R]: the sums of every `rows` elements of an output, one after the other."""
    outputs, k = squares.shape
    cut = _pad(squares, rows).reshape(outputs, -(-k // rows), rows)
    total = cut[:, :, 0].copy()
    for row in range(1, rows):
        total += cut[:, :, row]
    return np.where(np.isnan(total), np.inf, total)


def _pad(array: np.ndarray, multiple: int) -> np.ndarray:
    """`array` with zeros behind its last column, to whole multiples of columns."""
    return np.pad(array, ((0, 0), (0, -array.shape[1] % multiple)))


def _quantize(sums: np.ndarray) -> np.ndarray:
    """Whole numbers in proportion to `sums`, of which all sums are below 2^53."""
    bits = 52 - max(*sums.shape, 1 << 20).bit_length()
    is_finite = np.isfinite(sums)
    _, exponent = np.frexp(np.max(sums, where=is_finite, initial=0.0))
    scaled = np.ldexp(np.where(is_finite, sums, 0.0), bits - exponent)
    return np.where(is_finite, np.floor(scaled), float(1 << bits))


def _search(
    q: np.ndarray,
    keep: _Keep,
    width: int,
    seed: int,
    progress: Optional[Progress],
) -> List[np.ndarray]:
    """The outputs of each panel, ascending; panels by their first output, but that of
    fewer than `width` outputs last. q is [outputs, rows]."""
    outputs, count = len(q), -(-len(q) // width)
    if width == 1 or count <= 1:
        return [
            np.arange(at, min(at + width, outputs)) for at in range(0, outputs, width)
        ]
    q = _pad(q, keep.m)
    passes = min(MOST_PASSES, MULTIPLY_LIMIT // max(q.size * count, 1))
    step = _Steps(progress, count + passes)
    panel = _grow(_sample(q, keep, width, seed), keep, width, step)
    for _ in range(passes):
        step()
        sums = np.stack([q[panel == p].sum(axis=0) for p in range(count)])
        gain = q @ keep(sums).T.astype(np.float64)
        if not _swap(gain, panel, count):
            break
    panels = [np.flatnonzero(panel == p) for p in range(count)]
    last = [panels.pop()] if outputs % width else []
    return sorted(panels, key=lambda p: int(p[0])) + last


class _Steps:
    def __init__(self, progress: Optional[Progress], total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _sample(q: np.ndarray, keep: _Keep, width: int, seed: int) -> np.ndarray:
    """Some windows of `q`, so many that `_grow` ends soon: all of them, mostly."""
    outputs, rows = q.shape
    work = -(-outputs // width) * outputs * (width - 1).bit_length()
    windows = rows // keep.m
    wanted = max(max(2 * READ_LIMIT // work, LEAST_ROWS) // keep.m, 1)
    if wanted >= windows:
        return q
    numbers, state = list(range(windows)), seed
    for at in range(wanted):  # SplitMix64 draws without putting back
        state = (state + 0x9E3779B97F4A7C15) % (1 << 64)
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % (1 << 64)
        other = at + (z ^ (z >> 31)) % (windows - at)
        numbers[at], numbers[other] = numbers[other], numbers[at]
    chosen = np.sort(numbers[:wanted])
    return np.ascontiguousarray(
        q.reshape(outputs, windows, keep.m)[:, chosen].reshape(outputs, -1)
    )


def _grow(q: np.ndarray, keep: _Keep, width: int, step: _Steps) -> np.ndarray:
    """The panel of each output, one panel after the other: from the most important
    output that is left, twice as many outputs in each step, those of whose importance
    the largest share is in the rows that the panel would keep so far."""
    panel, left = np.empty(len(q), np.int64), np.arange(len(q))
    total = q.sum(axis=1)
    taken, rest, number = np.zeros(len(q), bool), len(q), 0
    while rest > width:
        if 8 * (len(left) - rest) > len(left):
            q, total, left = q[~taken], total[~taken], left[~taken]
            taken = np.zeros(rest, bool)
        own = [np.argmax(np.where(taken, -1.0, total))]
        sums = q[own].sum(axis=0)
        while len(own) < width:
            taken[own] = True
            share = q @ keep(sums[None])[0].astype(np.float64) / np.maximum(total, 1.0)
            order = np.argsort(np.where(taken, 1.0, -share), kind="stable")
            more = order[: min(len(own), width - len(own))]
            own += list(more)
            sums += q[more].sum(axis=0)
        taken[own] = True
        panel[left[own]] = number
        rest, number = rest - width, number + 1
        step()
    panel[left[~taken]] = number
    step()
    return panel


def _swap(gain: np.ndarray, panel: np.ndarray, count: int) -> bool:
    """Swaps outputs between panels as long as that gains, where `gain` says what each
    output would keep in each panel [outputs, panels]. Panels that gain most from each
    other, of equals the first ones, swap the outputs that gain most. Returns whether
    any did."""
    change = gain - np.take_along_axis(gain, panel[:, None], axis=1)
    best = np.empty((count, count))
    touched, any_swap = list(range(count)), False
    for _ in range(MOST_ROUNDS):
        for a in touched:
            best[a] = change[panel == a].max(axis=0)
        both = best + best.T
        np.fill_diagonal(both, 0)
        partner = np.argmax(both, axis=1)
        touched = []
        for a in range(count):
            b = int(partner[a])
            if a < b and partner[b] == a and both[a, b] > 0:
                _swap_pair(gain, change, panel, a, b)
                touched += [a, b]
        if not touched:
            break
        any_swap = True
    return any_swap


def _swap_pair(
    gain: np.ndarray, change: np.ndarray, panel: np.ndarray, a: int, b: int
) -> None:
    ours, theirs = np.flatnonzero(panel == a), np.flatnonzero(panel == b)
    ours = ours[np.argsort(-change[ours, b], kind="stable")]
    theirs = theirs[np.argsort(-change[theirs, a], kind="stable")]
    pairs = min(len(ours), len(theirs))
    ours, theirs = ours[:pairs], theirs[:pairs]
    better = change[ours, b] + change[theirs, a] > 0
    panel[ours[better]], panel[theirs[better]] = b, a
    for moved in (ours[better], theirs[better]):
        change[moved] = gain[moved] - gain[moved, panel[moved]][:, None]


def search_order(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    seed: int = 0,
    progress: Optional[Progress] = None,
) -> np.ndarray:
    """[batch,] N: an order of the outputs in which pruning to a shuffled encoding
    keeps much of the weight. That of a weight that has the pattern is the one that
    `encode` takes.

    density:   of a free encoding: the share of the blocks that are kept.
    seed:      which windows are looked at where there are too many for all.
    progress:  called with the number of steps that are done, and of all.
    """
    e, dtype = encoding, dtype or _default_dtype(weight)
    if not e.is_shuffled:
        raise EncodingError(f"order is {e.order!r}: only 'shuffled' has an order")
    shape = extents(e, weight.shape)
    _check_density(e, density)
    if density is not None and not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")
    places, _ = _places(weight, e, dtype, None)
    if not _has_pattern(order.put(weight, e, places), e.packed, dtype, density):
        bits = _turn(_bits(weight, dtype, "weight")[0], e.packed)
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = _numbers(np.ascontiguousarray(bits), dtype).reshape(shape)
            squares = numbers**2
        found = [find_order(s, e, density, seed, progress) for s in squares]
        places = np.array(found).reshape(places.shape)
    return _stored(places, weight)


def _has_pattern(
    weight: np.ndarray, e: Encoding, dtype: str, density: Optional[float]
) -> bool:
    """Whether the blocks that pruning keeps are all that there are."""
    try:
        packed = reference.encode(weight, e, dtype)
    except EncodingError:
        return False
    if density is None:
        return True
    rows, panels = free.counts(e, extents(e, weight.shape))
    return len(packed.index) <= int(np.floor(density * rows * panels + 0.5))


def prune(
    weight: np.ndarray,
    e: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    perm: Optional[np.ndarray] = None,
    seed: int = 0,
) -> np.ndarray:
    """Pruning by the reference, in the order of `search_order` unless one is given."""
    if e.is_shuffled and perm is None:
        perm = search_order(weight, e, dtype, density, seed)
    return shuffled.prune(weight, e, dtype, density, perm)
