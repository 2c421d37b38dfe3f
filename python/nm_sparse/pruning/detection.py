# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pattern a dense weight already has.

A weight obeys many patterns: what is 2:4 is 4:8, too. The tightest one is meant, and of
equally tight ones that with the largest blocks and the smallest windows.
"""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from ..encoding import Encoding, Level, extents
from ..reference import _bits

WINDOWS = (2, 4, 5, 8, 10, 16, 20, 32, 64)
OUTPUTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # of a panel, each twice the last
ROWS = (1, 2, 4, 8, 16, 32, 64)  # of a block
# A weight must fill at least this fraction of the places that a pattern has: else its
# zeros match by chance.
LEAST_FILLED = 0.75
PART = 1 << 22  # elements that are looked at at once


def count_live(weight: np.ndarray, dtype: str) -> int:
    """How many elements are not zero; bf16 and f8 as unsigned views. NaN is one."""
    bits, sign = _bits(weight, dtype, "weight")
    return int(np.count_nonzero(bits & ~bits.dtype.type(sign)))


def detect(weight: np.ndarray, dtype: str, dim: int = 1) -> Optional[Encoding]:
    """The pattern of a matrix along its dimension `dim`; None where it has none.

    Looks for windows of 2 to 64 blocks, panels of 1 to 256 outputs, blocks of 1 to 64
    rows, and for V:N:M, which is n:m in panels and 2 of the 4 rows that they keep.
    """
    bits, sign = _bits(weight, dtype, "weight")
    extents(Encoding(1, 1, dim=dim), bits.shape)
    rows = bits if dim == 1 else bits.T  # outputs first
    if not rows.size:
        return None
    counts: Dict[Tuple[int, int, int], int] = {}
    live = 0
    widths = [bn for bn in OUTPUTS if bn <= len(rows)]
    step = max(PART // rows.shape[1] // OUTPUTS[-1], 1) * OUTPUTS[-1]
    for start in range(0, len(rows), step):
        part = (rows[start : start + step] & ~rows.dtype.type(sign)) != 0
        live += int(np.count_nonzero(part))
        for key, count in _largest_counts(part, widths, counts):
            counts[key] = max(counts.get(key, 0), count)
        if all(count == m for (_, _, m), count in counts.items()):
            return None  # nothing that is still to come makes it sparse
    density = live / rows.size
    found = [e for e in _candidates(counts, dim) if _share(e) * LEAST_FILLED <= density]
    return min(found, key=_rank) if live and found else None


def _largest_counts(
    live: np.ndarray, widths: Sequence[int], known: Dict[Tuple[int, int, int], int]
) -> Iterator[Tuple[Tuple[int, int, int], int]]:
    """The most live blocks that a window has, by (bn, bk, m), of [outputs, K]. What is
    `known` to be dense is not looked at again, and no window that is never whole."""
    k = live.shape[1]
    # Along the outputs, which are many, sums are fast.
    panels = np.ascontiguousarray(live.T).view(np.uint8)
    for bn in widths:
        open_windows = {
            bk: [m for m in WINDOWS if m * bk <= k and known.get((bn, bk, m), 0) < m]
            for bk in ROWS
        }
        # Where all windows are full, so are those of wider panels.
        if not any(open_windows.values()):
            break
        if bn > 1:
            panels = _join_pairs(panels)
        for bk, windows in open_windows.items():
            if not windows:
                continue
            starts = np.arange(0, k, bk)
            blocks = np.bitwise_or.reduceat(panels, starts) if bk > 1 else panels
            for m in windows:
                starts = np.arange(0, len(blocks), m)
                sums = np.add.reduceat(blocks, starts, dtype=np.uint8)
                yield (bn, bk, m), int(sums.max())


def _join_pairs(panels: np.ndarray) -> np.ndarray:
    """Whether one of two neighbouring panels is live, [K, panels]."""
    joined = panels[:, ::2].copy()
    joined[:, : panels.shape[1] // 2] |= panels[:, 1::2]
    return joined


def _candidates(
    counts: Dict[Tuple[int, int, int], int], dim: int
) -> Iterator[Encoding]:
    for (bn, bk, m), n in counts.items():
        if 0 < n < m:
            yield Encoding(n, m, (bk, bn), dim)
        if n == 4 < m and bk == 1 < bn and 0 < counts[1, 1, m] <= 2:
            yield Encoding(4, m, (1, bn), dim, inner=Level(2, 4))


def _share(e: Encoding) -> float:
    """Of the elements, those that have room."""
    share = 1.0
    for level in e.levels:
        share *= level.n / level.m
    return share


def _rank(e: Encoding) -> Tuple[float, int, int, int, int]:
    """The smaller the better."""
    bk, bn = e.block
    kind = 1 if e.inner is not None else 0 if bk * bn > 1 else 2
    return _share(e), kind, -bn, -bk, e.m
