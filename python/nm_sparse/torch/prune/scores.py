# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the elements of a weight count when it is pruned.

A score takes the place of the magnitude |w| of each element: the blocks with the
largest sums of its squares stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Protocol, Union

import torch
from torch import Tensor

from ...encoding import EncodingError

if TYPE_CHECKING:
    from .statistics import Statistics


class ScoreFunction(Protocol):
    """A score of one's own: `score(weight, statistics)`.

    weight:      [N, K], outputs x inputs.
    statistics:  of the layer's inputs, on the device of the weight; None where there is
                 no calibration.

    Returns non-negative numbers [N, K].
    """

    def __call__(self, weight: Tensor, statistics: Optional[Statistics]) -> Tensor: ...


Score = Union[str, ScoreFunction]


def magnitude(weight: Tensor, statistics: Optional[Statistics] = None) -> Tensor:
    """|w|, [N, K]."""
    return weight.detach().abs()


def wanda(weight: Tensor, input_norms: Tensor) -> Tensor:
    """|w| times the norm of the input that it is multiplied by, [N, K] float64.

    weight:       [N, K].
    input_norms:  [K], the root of the sum of squares of each input over all tokens.

    Raises EncodingError when there is not a norm for each input.
    """
    if input_norms.shape != weight.shape[1:]:
        raise EncodingError(
            f"input_norms has shape {list(input_norms.shape)}: legal is "
            f"{list(weight.shape[1:])}, a norm for each input"
        )
    return weight.detach().double().abs() * input_norms.to(weight.device).double()


def surgeon(weight: Tensor, statistics: Statistics, damping: float = 0.01) -> Tensor:
    """|w| over the root of the diagonal of the inverse Gram matrix, [N, K] float64.

    The square is what the error of the outputs grows by when this element alone is
    dropped and all others of the output are fitted anew (the optimal brain surgeon).

    damping:  added to the diagonal of the Gram matrix, of the mean of it.
    """
    gram = statistics.gram.double()
    mean = float(gram.diagonal().mean())
    if not mean > 0:
        return weight.detach().double().abs()
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    lower = torch.linalg.cholesky(gram + damping * mean * eye)
    inverse = torch.cholesky_inverse(lower).diagonal()
    return weight.detach().double().abs() / inverse.sqrt().to(weight.device)


NAMES = ("magnitude", "wanda", "surgeon")


def needs_statistics(score: Score) -> bool:
    """Whether a score cannot do without calibration; of a function nothing is known."""
    return score in ("wanda", "surgeon") if isinstance(score, str) else False


def element_scores(
    weight: Tensor, score: Score, statistics: Optional[Statistics] = None
) -> Tensor:
    """The scores [N, K] of a weight.

    score:  "magnitude", "wanda", "surgeon", or a `ScoreFunction`.

    Raises EncodingError when the score is unknown, needs statistics that there are
    none of, or is not made of non-negative numbers in the shape of the weight.
    """
    if isinstance(score, str):
        if score not in NAMES:
            raise EncodingError(
                f"score is {score!r}: legal is {', '.join(map(repr, NAMES))}, or a "
                "function of a weight and the statistics of its inputs"
            )
        if score == "magnitude":
            return magnitude(weight)
        if statistics is None:
            raise EncodingError(
                f"score is {score!r} without statistics of the inputs: pass "
                "calibration, or take 'magnitude'"
            )
        if score == "wanda":
            return wanda(weight, statistics.norms)
        return surgeon(weight, statistics)
    found = score(weight.detach(), statistics)
    if not isinstance(found, Tensor) or found.shape != weight.shape:
        kind = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise EncodingError(
            f"score has returned {kind}: legal is a tensor {list(weight.shape)}, a "
            "number for each element of the weight"
        )
    found = found.detach().to(weight.device)
    if bool((found < 0).any()):
        raise EncodingError("scores are negative: legal are non-negative numbers")
    return found
