# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which elements of a weight stay, of scores of its elements and any encoding.

The choice is that of section 3 of docs/Encoding.md, and so that of `nm_sparse.prune`:
blocks are kept by the sums of the squares of what stands for the magnitudes of their
elements. Weights are [N, K], outputs x inputs, as those of `nn.Linear`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Union

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError, Level
from ..weight.levels import blocks_of
from ..weight.masks import _sum, keep_mask

CHUNK = 1 << 23  # scores that are looked at together


def layer_encoding(encoding: Union[Encoding, str]) -> Encoding:
    """The encoding of a weight [N, K]: one with `dim = 0`, the default, is turned.

    Unlike layers that are packed, it may be `free`. Raises EncodingError when it is no
    encoding or its text, and when dim is 2.
    """
    e = Encoding(encoding) if isinstance(encoding, str) else encoding
    if not isinstance(e, Encoding):
        raise EncodingError(f"encoding is {e!r}: legal is an Encoding or its text")
    if e.dim == 2:
        raise EncodingError("dim is 2: a weight [outputs, inputs] contracts dim 1")
    return replace(e, dim=1)


def check_density(e: Encoding, density: Optional[float]) -> None:
    """Raises EncodingError unless a free encoding, and no other, has a density."""
    if e.is_free != (density is not None):
        raise EncodingError(
            f"density is {density} of {e}: legal is a share from 0 to 1 for a free "
            "encoding, and None for n:m"
        )
    if density is not None and not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")


def pattern_mask(
    scores: Tensor,
    encoding: Union[Encoding, str],
    density: Optional[float] = None,
    perm: Optional[Tensor] = None,
) -> Tensor:
    """Which elements stay, bool [N, K] on the device of `scores`.

    scores:   [N, K] of any float type: what stands for the magnitudes |w|.
    density:  of a free encoding: the share of all blocks that stay, 0 to 1.
    perm:     of a shuffled one: [N], the order of its outputs. Place j of the packed
              outputs holds output perm[j].

    Raises EncodingError when the encoding, density or perm do not fit.
    """
    e = layer_encoding(encoding)
    check_density(e, density)
    if scores.ndim != 2:
        raise EncodingError(f"scores have rank {scores.ndim}: legal is 2, [N, K]")
    if e.is_shuffled != (perm is not None):
        raise EncodingError(
            f"perm is {'given' if perm is not None else 'None'}, and order is "
            f"{e.order!r}: legal is an order of the outputs where it is 'shuffled'"
        )
    if perm is None:
        return _mask(scores, e, density)
    places = checked_perm(perm, len(scores)).to(scores.device)
    mask = torch.empty(scores.shape, dtype=torch.bool, device=scores.device)
    mask[places] = _mask(scores[places], replace(e, order="identity"), density)
    return mask


def checked_perm(perm: Tensor, outputs: int) -> Tensor:
    """`perm` as int64 [N]. Raises EncodingError when it is no permutation of `outputs`
    numbers."""
    places = torch.as_tensor(perm).to(torch.int64)
    numbers = torch.arange(outputs, device=places.device)
    if places.shape != (outputs,) or not torch.equal(places.sort().values, numbers):
        raise EncodingError(
            f"perm is no permutation: legal is each number below {outputs} once"
        )
    return places


def _mask(scores: Tensor, e: Encoding, density: Optional[float]) -> Tensor:
    if density is None:
        return keep_mask(scores, None, e)
    return _free_mask(scores.t(), e, density).t()


def _free_mask(rows: Tensor, e: Encoding, density: float) -> Tensor:
    """Which elements of `rows` [K, N] are in the best blocks of the whole weight."""
    (k, outputs), (bk, bn) = rows.shape, e.block
    level = Level(1, 1, e.block)
    step = max(1, CHUNK // max(1, bk * outputs)) * bk
    sums = []
    for first in range(0, k if outputs else 0, step):
        squares = rows[first : first + step].to(torch.float64).square()
        sums.append(_sum(blocks_of(squares, level)[:, 0], 1, 3))
    if not sums:
        return torch.zeros((k, outputs), dtype=torch.bool, device=rows.device)
    listed = torch.cat(sums).t().reshape(-1)  # panel by panel
    count = int(density * listed.numel() + 0.5)
    best = torch.argsort(listed, descending=True, stable=True)[:count]
    kept = torch.zeros(listed.shape, dtype=torch.bool, device=rows.device)
    kept[best] = True
    kept = kept.reshape(-(-outputs // bn), -1).t()
    kept = kept.repeat_interleave(bk, dim=0).repeat_interleave(bn, dim=1)
    return kept[:k, :outputs]
