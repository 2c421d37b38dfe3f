# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruning of section 3 of docs/Encoding.md in vectorized torch, with any scores.

On the CPU the result is that of `nm_sparse.prune`, bit for bit. A GPU adds up the
scores of a block in float64 as well, and in the same order.
"""

from __future__ import annotations

from typing import Callable, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from ...packing import shuffled
from .levels import blocks_of
from .spec import dtype_name, linear_encoding

# How a layer is scored: "magnitude", non-negative importances [N, K], or what makes
# them of the weight.
Score = Union[str, Tensor, Callable[[Tensor], Tensor]]
CHUNK = 1 << 23  # scores that are looked at together


def element_scores(weight: Tensor, score: Score = "magnitude") -> Optional[Tensor]:
    """The importance of each element, [N, K] as the weight, or None for its square.

    Raises EncodingError when `score` is unknown, and when scores are no tensor of
    non-negative numbers of the shape of the weight.
    """
    if isinstance(score, str):
        if score != "magnitude":
            raise EncodingError(
                f"score is {score!r}: legal is 'magnitude', a tensor of scores, or a "
                "function of the weight that returns one"
            )
        return None
    scores = score(weight) if callable(score) else score
    if not isinstance(scores, Tensor) or scores.shape != weight.shape:
        found = list(scores.shape) if isinstance(scores, Tensor) else type(scores)
        raise EncodingError(
            f"scores are {found}: legal is a tensor {list(weight.shape)}, a "
            "non-negative number for each element of the weight"
        )
    scores = scores.detach().to(weight.device)
    if bool((scores < 0).any()):
        raise EncodingError("scores are negative: legal are non-negative numbers")
    return scores


def prune_weight(
    weight: Tensor,
    encoding: Union[Encoding, str],
    score: Score = "magnitude",
    perm: Optional[Tensor] = None,
) -> Tuple[Tensor, Optional[Tensor]]:
    """The weight [N, K] with +0 wherever the pattern has no room.

    score:  what is kept: the blocks of the largest sums of it.
    perm:   [N], the order of the outputs of a shuffled weight; by default one in
            which much is kept (a search of section 3, which takes a while).

    Returns the pruned weight, and the order of a shuffled one. Raises EncodingError
    when rank, type, scores or perm do not fit.
    """
    e = linear_encoding(encoding)
    if weight.ndim != 2:
        raise EncodingError(f"weight has rank {weight.ndim}: legal is 2, [N, K]")
    dtype_name(weight.dtype)
    dense = weight.detach()
    scores = element_scores(dense, score)
    if e.is_shuffled and perm is None:
        perm = _search(dense, scores, e)
    if perm is None:
        return _keep(dense, keep_mask(dense, scores, e)), None
    if not e.is_shuffled:
        raise EncodingError("perm is given, but order is 'identity': legal is none")
    places = perm.to(dense.device, torch.int64)
    if not torch.equal(places.sort().values.cpu(), torch.arange(len(dense))):
        raise EncodingError(
            f"perm is no permutation: legal is each number below {len(dense)} once"
        )
    ordered = None if scores is None else scores[places]
    mask = torch.empty(dense.shape, dtype=torch.bool, device=dense.device)
    mask[places] = keep_mask(dense[places], ordered, e)
    return _keep(dense, mask), places.to(torch.int32)


def keep_mask(weight: Tensor, scores: Optional[Tensor], e: Encoding) -> Tensor:
    """Which elements of [N, K] stay, outputs in packed order.

    scores:  as `element_scores` returns them.
    """
    source = (weight if scores is None else scores).t()
    k, outputs = source.shape
    height = e.m * e.block[0]
    mask = torch.zeros((k, outputs), dtype=torch.bool, device=weight.device)
    step = max(1, CHUNK // max(1, height * outputs)) * height
    for first in range(0, k if outputs else 0, step):
        part = source[first : first + step].to(torch.float64)
        part = part.square() if scores is None else part
        kept = _keep_blocks(blocks_of(part, e), e)
        rows = kept.reshape(kept.shape[0] * height, -1)
        mask[first : first + step] = rows[: part.shape[0], :outputs]
    return mask.t()


def _keep(dense: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, dense, dense.new_zeros(())).contiguous()


def _search(dense: Tensor, scores: Optional[Tensor], e: Encoding) -> Tensor:
    """An order of the outputs in which much of the scores is kept. The search squares
    its weight, so it is given the roots of scores."""
    numbers = dense.double() if scores is None else scores.double().sqrt()
    found = shuffled.search_order(numbers.cpu().contiguous().numpy(), e)
    return torch.from_numpy(found.astype(np.int32))


def _sum(terms: Tensor, *dims: int) -> Tensor:
    """The sum over the last `dims`, term by term in their order, so that equal weights
    have equal scores everywhere; a NaN counts as infinite."""
    last = terms.movedim(dims, tuple(range(-len(dims), 0))).flatten(-len(dims))
    total = last[..., 0].clone()
    for term in range(1, last.shape[-1]):
        total += last[..., term]
    return torch.nan_to_num(total, nan=torch.inf, posinf=torch.inf)


def _best(scores: Tensor, n: int) -> Tensor:
    """Which are the n largest along dimension 1; of equals the first ones."""
    order = torch.argsort(scores, dim=1, descending=True, stable=True)[:, :n]
    best = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    return best.scatter_(1, order, True)


def _keep_blocks(squares: Tensor, e: Encoding) -> Tensor:
    """Which elements stay, as [W, m, bk, P, bn], like `squares`."""
    if e.inner is None:
        best = _best(_sum(squares, 2, 4), e.n)
        return best[:, :, None, :, None].expand(squares.shape)
    (windows, m, bk, panels, bn), (ik, jn) = squares.shape, e.inner.block
    # Strips of the inner blocks' height, and inner panels.
    cut = squares.reshape(windows, m * bk // ik, ik, panels, bn // jn, jn)
    scores = _sum(cut, 2, 5)
    counted = torch.where(_best(scores, e.inner.n), scores, scores.new_zeros(()))
    counted = counted.reshape(windows, m, bk // ik, panels, bn // jn)
    outer = _best(_sum(counted, 2, 4), e.n).repeat_interleave(bk // ik, dim=1)
    outer = outer[..., None]
    chosen = torch.where(outer, scores, scores.new_full((), -1))
    chosen = _best(chosen, e.inner.n) & (scores > 0) & outer
    kept = chosen[:, :, None, :, :, None].expand(cut.shape)
    return kept.reshape(squares.shape)
