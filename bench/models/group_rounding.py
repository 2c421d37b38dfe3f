# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fit of weights as integers of a few bits, with a scale for each group of inputs,
and sweeps of roundings as CUDA graphs.

`nm_sparse.torch.prune` rounds to 8 bits with a scale for each output. Here is the same
search for groups: one element after the other is rounded by what all others leave, and
each scale is fitted to its elements. `fitted_roundings` has `prune_` use it, so that
each layer is fitted to the inputs that the rounded layers before it give.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from number_formats import GROUP, is_grouped, limits
from torch import Tensor

from nm_sparse.torch.prune import layer as prune_layer
from nm_sparse.torch.prune import rounding
from nm_sparse.torch.prune.least_squares import targets

SWEEPS = 3
RATIOS = [1.0 - 0.04 * step for step in range(14)]  # of the largest, for first scales

# Rounds columns in place: (found, rest, matrix, kept, scale), see `Columns`.
Work = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], None]


class Columns:
    """Rounds up to `GROUP` columns, on a GPU as a CUDA graph: a column takes a dozen
    kernels that are over sooner than they can be launched.

    work:  changes `found` [N, c], of `rest` [N, c], `matrix` [c, c], `kept` [N, c] and
           `scale` [N, 1].
    """

    def __init__(self, work: Work) -> None:
        self.work, self.works = work, True
        self.graphs: Dict[Any, Tuple[Any, List[Tensor]]] = {}

    def __call__(self, *operands: Tensor) -> Tensor:
        """The columns after the work; changes no operand."""
        if operands[0].device.type != "cuda" or not self.works:
            return self._plain(operands)
        key = tuple(operands[0].shape), operands[0].dtype
        if key not in self.graphs:
            self._capture(key, operands)
        if not self.works:
            return self._plain(operands)
        graph, places = self.graphs[key]
        for place, operand in zip(places, operands):
            place.copy_(operand)
        graph.replay()
        return places[0].clone()

    def _plain(self, operands: Tuple[Tensor, ...]) -> Tensor:
        own = [operand.clone() for operand in operands]
        self.work(*own)
        return own[0]

    def _capture(self, key: Any, operands: Tuple[Tensor, ...]) -> None:
        """Captures the work, and compares the graph with it once."""
        wanted = self._plain(operands)
        places = [operand.clone() for operand in operands]
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self.work(*places)
        except RuntimeError as error:
            self.works = False
            print(f"no CUDA graph of a sweep: {error}", file=sys.stderr)
            return
        for place, operand in zip(places, operands):
            place.copy_(operand)
        graph.replay()
        torch.cuda.synchronize()
        share = float((places[0] == wanted).float().mean())
        self.works = share > 0.999
        if not self.works:
            print(f"a CUDA graph of a sweep gives {share:.1%} alike", file=sys.stderr)
        self.graphs[key] = graph, places


def sweep(
    columns: Columns,
    found: Tensor,
    rest: Tensor,
    matrix: Tensor,
    kept: Tensor,
    scale: Tensor,
) -> None:
    """Rounds all columns of `found` [N, K] anew, in place, and updates `rest`.

    scale:  [N, 1], or [N, K / GROUP].
    """
    for number, begin in enumerate(range(0, found.shape[1], GROUP)):
        part = slice(begin, begin + GROUP)
        at = number if scale.shape[1] > 1 else 0
        new = columns(
            found[:, part],
            rest[:, part],
            matrix[part, part],
            kept[:, part],
            scale[:, at : at + 1],
        )
        rest -= (new - found[:, part]) @ matrix[part]
        found[:, part] = new


def integers(low: int, high: int) -> Work:
    """The work of `Columns` that rounds to integers times scales."""

    def work(
        found: Tensor, rest: Tensor, matrix: Tensor, kept: Tensor, scale: Tensor
    ) -> None:
        diagonal = matrix.diagonal().clamp(min=1e-30)
        for at in range(found.shape[1]):
            wanted = found[:, at] + rest[:, at] / diagonal[at]
            new = (wanted / scale[:, 0]).round().clamp(low, high) * scale[:, 0]
            change = (new - found[:, at]) * kept[:, at]
            found[:, at] += change
            rest[:, at:] -= torch.outer(change, matrix[at, at:])

    return work


def first_scales(numbers: Tensor, diagonal: Tensor, low: int, high: int) -> Tensor:
    """Scales f32 [N, K / GROUP] by which elements alone are off least.

    numbers:   [N, K], where K is a multiple of `GROUP`.
    diagonal:  [K], what the square of an error counts.

    The side with one integer more takes the largest number, so a scale may be negative.
    """
    grouped = numbers.unflatten(1, (-1, GROUP))
    places = grouped.abs().argmax(-1, keepdim=True)
    largest = grouped.gather(-1, places) / low
    largest = torch.where(largest == 0, torch.ones_like(largest), largest)
    counts = diagonal.view(1, -1, GROUP)
    best, least = largest, None
    for ratio in RATIOS:
        scale = to_f16(largest * ratio)
        off = (grouped / scale).round().clamp(low, high) * scale - grouped
        error = (off.square() * counts).sum(-1, keepdim=True)
        if least is None:
            best, least = scale, error
        best = torch.where(error < least, scale, best)
        least = torch.minimum(error, least)
    return best[..., 0]


def to_f16(scale: Tensor) -> Tensor:
    """Scales as they are stored, and never 0."""
    small = scale.abs() < 1e-7
    return torch.where(small, torch.full_like(scale, 1e-7), scale).half().to(scale)


def refit_scales(found: Tensor, rest: Tensor, matrix: Tensor, scale: Tensor) -> Tensor:
    """Scales by which the same integers are off least, one group after the other.
    Changes `found` and `rest` accordingly."""
    scale = scale.clone()
    for number in range(scale.shape[1]):
        part = slice(number * GROUP, (number + 1) * GROUP)
        own = found[:, part]
        above = (own * rest[:, part]).sum(1)
        below = ((own @ matrix[part, part]) * own).sum(1)
        ratio = 1 + above / below
        is_better = (below > 0) & (ratio > 0.5) & (ratio < 2)
        better = to_f16(scale[:, number] * torch.where(is_better, ratio, 1.0))
        new = own * (better / scale[:, number])[:, None]
        rest -= (new - own) @ matrix[part]
        found[:, part] = new
        scale[:, number] = better
    return scale


@dataclass
class Roundings:
    """What rounds the layers of one model, and what became of them in their order.

    masks:   bool [N, K], which elements stay.
    scales:  f32 [N], or [N, K / GROUP].
    """

    elements: str
    masks: List[Tensor] = field(default_factory=list)
    scales: List[Tensor] = field(default_factory=list)

    def group_rounded(
        self,
        fitted: Tensor,
        weight: Tensor,
        mask: Tensor,
        gram: Tensor,
        cross: Optional[Tensor],
        damping: float,
    ) -> rounding.Rounded:
        """As `round_fitted` of the package, with integers and scales of groups."""
        low, high = limits(self.elements)
        if fitted.shape[1] % GROUP:
            raise ValueError(
                f"the weight has {fitted.shape[1]} inputs: legal is a multiple of the "
                f"{GROUP} of a group"
            )
        numbers, kept = fitted.detach().to(gram), mask.to(gram.device)
        right, added = targets(weight.detach().to(gram), gram, cross, damping)
        matrix = gram.clone()
        matrix.diagonal().add_(added)
        scale = first_scales(numbers, matrix.diagonal(), low, high)
        wide = scale.repeat_interleave(GROUP, 1)
        found = (numbers / wide).round().clamp(low, high) * wide
        columns = _COLUMNS.setdefault(self.elements, Columns(integers(low, high)))
        for _ in range(SWEEPS):
            rest = right - found @ matrix
            sweep(columns, found, rest, matrix, kept, scale)
            scale = refit_scales(found, rest, matrix, scale)
        return rounding.Rounded(found.to(weight), scale.float())


_COLUMNS: Dict[str, Columns] = {}


def _package_columns(kind: str, plain: Callable[..., None]) -> Columns:
    """The package's own sweep on so many columns, as a graph."""

    def work(found: Tensor, rest: Tensor, *others: Tensor) -> None:
        plain(found, rest, *others, kind)

    return _COLUMNS.setdefault(kind, Columns(work))


@contextlib.contextmanager
def fitted_roundings(elements: str) -> Iterator[Roundings]:
    """As long as it lasts, `prune_` with 8-bit weights in its config rounds to
    `elements`, and what it finds is kept.

    The masks are not in the report of `prune_`, and cannot be seen in weights where an
    element that is kept may be rounded to zero.
    """
    found, round_fitted, plain = (
        Roundings(elements),
        prune_layer.round_fitted,
        rounding._sweep,
    )

    def recorded(
        fitted: Tensor, weight: Tensor, mask: Tensor, gram: Tensor, *more: Any
    ) -> rounding.Rounded:
        cross, damping = more[:2]
        if is_grouped(elements):
            given = fitted, weight, mask, gram, cross, damping
            result = found.group_rounded(*given)
        else:
            result = round_fitted(fitted, weight, mask, gram, *more)
        found.masks.append(mask)
        found.scales.append(result.scale)
        return result

    def graphed(
        numbers: Tensor,
        rest: Tensor,
        matrix: Tensor,
        kept: Tensor,
        scale: Tensor,
        kind: str,
    ) -> None:
        columns = _package_columns(kind, plain)
        sweep(columns, numbers, rest, matrix, kept, scale)

    prune_layer.round_fitted, rounding._sweep = recorded, graphed
    try:
        yield found
    finally:
        prune_layer.round_fitted, rounding._sweep = round_fitted, plain
