# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fitted weights as elements of 8 bits with scales: each element is rounded so that it
makes up for what others are off, and each scale is fitted to its elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from ..weight.scales import to_elements, to_scale
from ..weight.spec import elements_of
from .least_squares import targets

_SWEEPS = 3
_COLUMNS = 128  # whose changes are brought to all others together


@dataclass
class Rounded:
    """What `round_fitted` has found.

    weight:  [N, K] in the type of the weight: products of elements and scales.
    scale:   f32 [N], of each output.
    """

    weight: Tensor
    scale: Tensor


def round_weight(weight: Tensor, elements: str, scales: str = "output") -> Rounded:
    """Each element rounded to nearest, by the largest of its output or of all.

    weight:    [N, K].
    elements:  "e4m3" or "int8".
    scales:    "output" or "tensor".
    """
    kind = str(elements_of(elements))
    numbers = weight.detach().to(torch.float32)
    scale = _first_scale(numbers, kind, scales)
    return Rounded(_nearest(numbers, scale[:, None], kind).to(weight), scale)


def round_fitted(
    fitted: Tensor,
    weight: Tensor,
    mask: Tensor,
    gram: Tensor,
    cross: Optional[Tensor] = None,
    damping: float = 0.03,
    elements: str = "e4m3",
    scales: str = "output",
    sweeps: int = _SWEEPS,
) -> Rounded:
    """The elements and scales that change the outputs of a layer least, as found from
    `fitted` by one element after the other, which never makes them worse.

    fitted:    [N, K], zero where the mask is False, such as that of `fit`.
    weight, mask, gram, cross, damping:  as for `fit`, of which it was made.
    elements:  "e4m3" or "int8".
    scales:    "output" or "tensor".
    sweeps:    how often each element is looked at.
    """
    kind = str(elements_of(elements))
    numbers, kept = fitted.detach().to(gram), mask.to(gram.device)
    scale = _first_scale(numbers, kind, scales)
    found = _nearest(numbers, scale[:, None].to(gram), kind)
    right, added = targets(weight.detach().to(gram), gram, cross, damping)
    matrix = gram.clone()
    matrix.diagonal().add_(added)
    # Where the outputs are off, as each input sees it.
    rest = right - found @ matrix
    for _ in range(sweeps if bool(torch.isfinite(matrix).all()) else 0):
        _sweep(found, rest, matrix, kept, scale[:, None].to(gram), kind)
        better = _fitted_scale(found, right, matrix, scale, scales)
        ratio = (better / scale).to(gram)[:, None]
        scale, found = better, found * ratio
        rest = right - found @ matrix
    return Rounded(found.to(weight), scale)


def _first_scale(numbers: Tensor, kind: str, scales: str) -> Tensor:
    largest = numbers.new_zeros(len(numbers))
    if numbers.shape[1]:
        largest = numbers.abs().amax(1)
    if scales == "tensor" and len(largest):
        largest = largest.amax().expand(len(largest))
    return to_scale(largest, kind).contiguous()


def _nearest(numbers: Tensor, scale: Tensor, kind: str) -> Tensor:
    return to_elements(numbers / scale, kind).to(numbers) * scale


def _sweep(
    found: Tensor, rest: Tensor, matrix: Tensor, kept: Tensor, scale: Tensor, kind: str
) -> None:
    """Rounds each column anew, in place, by what all others leave."""
    diagonal = matrix.diagonal()
    for begin in range(0, found.shape[1], _COLUMNS):
        part = slice(begin, begin + _COLUMNS)
        own, near = matrix[part, part], rest[:, part].clone()
        columns = found[:, part].clone()
        for at in range(columns.shape[1]):
            weight = diagonal[begin + at]
            wanted = columns[:, at] + near[:, at] / weight.clamp(min=1e-30)
            new = _nearest(wanted[:, None], scale, kind)[:, 0]
            is_moved = kept[:, begin + at] & (weight > 0)
            change = torch.where(is_moved, new - columns[:, at], 0)
            columns[:, at] += change
            near[:, at:] -= torch.outer(change, own[at, at:])
        rest -= (columns - found[:, part]) @ matrix[part]
        found[:, part] = columns


def _fitted_scale(
    found: Tensor, right: Tensor, matrix: Tensor, scale: Tensor, scales: str
) -> Tensor:
    """The scale by which these elements are off least."""
    above = (found * right).sum(1)
    below = ((found @ matrix) * found).sum(1)
    if scales == "tensor":
        above, below = above.sum().expand_as(above), below.sum().expand_as(below)
    ratio = above / below
    is_better = (below > 0) & torch.isfinite(ratio) & (ratio > 0)
    return torch.where(is_better, scale * ratio.to(scale), scale).contiguous()
