# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders of outputs: the permutations of shuffled weights (docs/Encoding.md).

Place j of the packed outputs holds output perm[j] of the weight.
"""

from __future__ import annotations

from typing import List, Optional

import numpy as np

from . import Encoding, EncodingError, Level, extents


def checked(perm: np.ndarray, e: Encoding, weight: np.ndarray) -> np.ndarray:
    """`perm` as [batch, N] of int64. Raises EncodingError unless it is an array of
    permutations of the outputs of `weight`."""
    batch, _, outputs = extents(e, weight.shape)
    legal = weight.shape[:-2] + (outputs,)
    if perm.shape != legal or perm.dtype.kind not in "iu":
        raise EncodingError(
            f"perm has shape {perm.shape} and type {perm.dtype}: legal are integers "
            f"of shape {legal}"
        )
    places = perm.astype(np.int64).reshape(batch, outputs)
    for entry, row in enumerate(places):
        at = np.full(outputs, -1)
        for place, output in enumerate(row.tolist()):
            wrong = not 0 <= output < outputs
            if wrong or at[output] >= 0:
                reason = (
                    f"is not below {outputs}"
                    if wrong
                    else f"place {at[output]} holds, too"
                )
                raise EncodingError(
                    f"perm of batch {entry} has {output} at place {place}, which "
                    f"{reason}: legal is each number below {outputs} once; it is "
                    "damaged or of another weight"
                )
            at[output] = place
    return places


def put(weight: np.ndarray, e: Encoding, perm: np.ndarray) -> np.ndarray:
    """The weight with its outputs in the order of `perm` [batch, N]."""
    return np.take_along_axis(weight, _along(weight, e, perm), _axis(weight, e))


def put_back(weight: np.ndarray, e: Encoding, perm: np.ndarray) -> np.ndarray:
    """The weight of which `put` makes `weight`."""
    result = np.empty_like(weight)
    np.put_along_axis(result, _along(weight, e, perm), weight, _axis(weight, e))
    return result


def _axis(weight: np.ndarray, e: Encoding) -> int:
    return 2 * weight.ndim - 3 - e.dim


def _along(weight: np.ndarray, e: Encoding, perm: np.ndarray) -> np.ndarray:
    """`perm` with one entry along the contraction."""
    return np.expand_dims(perm.reshape(weight.shape[:-2] + (-1,)), e.dim)


def from_support(live: np.ndarray, e: Encoding) -> np.ndarray:
    """[batch, N]: the order that an encoder takes when it is given none.

    live:  which elements keep their rows, as [batch, K, N].
    """
    return np.array([_order(entry.T, e) for entry in live]).reshape(
        live.shape[0], live.shape[2]
    )


def _order(live: np.ndarray, e: Encoding) -> np.ndarray:
    panels = _panels(_blocks(live, e.block[0]), e.block[1], e)
    if e.inner is not None and e.inner.block[1] > 1:
        strips, width = _blocks(live, e.inner.block[0]), e.inner.block[1]
        for at, panel in enumerate(panels):
            panels[at] = panel[np.concatenate(_panels(strips[panel], width, None))]
    return np.concatenate(panels) if panels else np.zeros(0, np.int64)


def _blocks(live: np.ndarray, rows: int) -> np.ndarray:
    """[N, R]: the rows of blocks in which each output has a live element."""
    outputs, k = live.shape
    if k == 0 or rows == 1:
        return live
    return np.logical_or.reduceat(live, np.arange(0, k, rows), axis=1)


def _panels(
    support: np.ndarray, width: int, level: Optional[Level]
) -> List[np.ndarray]:
    """The outputs of each panel of `width`, ascending: first panels of outputs that
    have the same support, then others that add as little as can be to each other's.
    With `level`, where the rows are, a panel of fewer may be one of the latter."""
    outputs = len(support)
    if width == 1:
        return [np.array([output]) for output in range(outputs)]
    _, group = np.unique(np.packbits(support, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    whole = np.bincount(group) // width * width
    rank = np.empty(outputs, np.int64)  # among those of equal support
    rank[order] = np.arange(outputs) - np.searchsorted(group[order], group[order])
    full = order[rank[order] < whole[group[order]]]
    panels = list(full.reshape(-1, width).tolist())
    left = np.setdiff1d(np.arange(outputs), full)
    count, size = np.bincount(group) - whole, support.sum(axis=1)
    last: List[List[int]] = []
    while left.size:
        short = None if last or level is None else outputs % width
        panel = _merge(support, size, count[group], left, width, short, level)
        np.subtract.at(count, group[panel], 1)
        left = np.setdiff1d(left, panel)
        (panels if len(panel) == width else last).append(sorted(panel))
    return [np.array(panel) for panel in sorted(panels) + last]


def _merge(
    support: np.ndarray,
    size: np.ndarray,
    alike: np.ndarray,
    left: np.ndarray,
    width: int,
    short: Optional[int],
    level: Optional[Level],
) -> List[int]:
    """The next panel out of `left`. It begins with the output whose support most of
    them have (`alike`), of these one with the most rows; then comes the one that
    adds the fewest rows to those of the panel, again one with the most rows. Of
    equals the first one, always. With `short` outputs it ends where the next one does
    not belong to it."""
    rows = support.shape[1]
    panel = [int(left[np.argmax(alike[left] * (rows + 1) + size[left])])]
    union = support[panel[0]].copy()
    added = (support[left] & ~union).sum(axis=1)
    added[left == panel[0]] = rows + 1
    while len(panel) < min(width, len(left)):
        at = np.argmin(added * (rows + 1) + rows - size[left])
        if len(panel) == short and level is not None:
            if _is_foreign(support[left[at]], union, level):
                break
        panel.append(int(left[at]))
        more = support[left[at]] & ~union
        if more.any():
            union |= more
            known = added <= rows
            added[known] -= support[np.ix_(left[known], more)].sum(axis=1)
        added[at] = rows + 1
    return panel


def _is_foreign(support: np.ndarray, union: np.ndarray, level: Level) -> bool:
    """Whether a panel with the rows `union` and an output with those of `support`
    break the pattern; of a free level, whether it adds more than a quarter of its."""
    if level.is_free:
        return bool(4 * (support & ~union).sum() > support.sum())
    both = np.pad(union | support, (0, -len(union) % level.m))
    return bool((both.reshape(-1, level.m).sum(axis=1) > level.n).any())
