# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prunes one linear layer, given what is known of its inputs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError
from ..layers.convertible import matrix_of, write_matrix_
from ..layers.scaled_linear import SAME, check_quantization
from .least_squares import fit
from .masks import check_density, checked_perm, layer_encoding, pattern_mask
from .obstacles import weight_obstacle
from .permute import output_order
from .report import LayerReport
from .rounding import round_fitted, round_weight
from .scores import Score, element_scores, needs_statistics
from .statistics import Statistics


@dataclass(frozen=True)
class PruneConfig:
    """How a layer is pruned.

    encoding:  an Encoding or its text, of a weight [outputs, inputs].
    density:   of a free encoding: the share of the blocks that stay, 0 to 1.
    score:     "magnitude", "wanda" (magnitude times norm of the input), "surgeon" (what
               dropping it costs at least) or a function of weight and statistics.
    fit:       whether the kept weights are set to their least-squares fit.
    damping:   of the fit, of the mean of the Gram matrix's diagonal, 0 to 1.
    target:    what the outputs are fitted to, 0 to 1. With 0, those of the dense layer
               for the inputs that it gets now, from the pruned layers before it. With
               1, those that it has in the dense model, so that it makes up for these
               layers; of few tokens it learns too much by heart then. In between, such
               a mean of both.
    fit_bias:  whether the bias, where the layer has one, makes up for the mean of what
               pruning changes.
    seed:      of the search for the order of a shuffled encoding.
    keep_larger:  whether a layer is pruned, too, whose packed weight takes no less
               memory than the dense one.
    weights:   "e4m3" or "int8": `pack_` makes elements of 8 bits with scales of what is
               kept; with a fit each is rounded by what others leave (`rounding.py`).
               None: it is not rounded. Convolutions never are.
    activations, scales:  where weights are, as for `NMSparseConfig`.

    Raises EncodingError when a field is out of its range, or encoding and density do
    not fit.
    """

    encoding: Union[Encoding, str]
    density: Optional[float] = None
    score: Score = "wanda"
    fit: bool = True
    damping: float = 0.03
    target: float = 0.5
    fit_bias: bool = True
    seed: int = 0
    keep_larger: bool = False
    weights: Optional[str] = None
    activations: str = SAME
    scales: str = "output"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", layer_encoding(self.encoding))
        check_density(self.pattern, self.density)
        check_quantization(self.weights, self.activations, self.scales)
        for name in ("damping", "target"):
            if not 0 <= getattr(self, name) <= 1:
                raise EncodingError(
                    f"{name} is {getattr(self, name)}: legal is from 0 to 1"
                )

    @property
    def pattern(self) -> Encoding:
        """The encoding, with dim = 1."""
        return layer_encoding(self.encoding)

    @property
    def needs_calibration(self) -> bool:
        return self.fit or needs_statistics(self.score)


def as_config(config: Any) -> PruneConfig:
    """A PruneConfig of an encoding, its text, or any object with an `encoding`."""
    if isinstance(config, PruneConfig):
        return config
    if isinstance(config, (str, Encoding)):
        return PruneConfig(config)
    if hasattr(config, "encoding"):
        names = [f.name for f in fields(PruneConfig) if hasattr(config, f.name)]
        given = {name: getattr(config, name) for name in names if name != "encoding"}
        return PruneConfig(config.encoding, **given)
    raise EncodingError(
        f"config is {config!r}: legal is a PruneConfig, an Encoding or its text"
    )


def prune_linear_(
    linear: nn.Module,
    config: Any,
    statistics: Optional[Statistics] = None,
    name: str = "",
    perm: Optional[Tensor] = None,
    progress: Optional[Callable[[int, int], None]] = None,
) -> LayerReport:
    """Prunes the weight of a layer in place, and fits it and the bias.

    config:      a PruneConfig, an Encoding or its text.
    statistics:  of the layer's inputs; needed for a fit and for most scores.
    perm:        the order of the outputs of a shuffled encoding; found by default.
    progress:    of that search: called with steps done, and of how many.

    Returns what became of the layer. Raises EncodingError when something does not fit;
    the layer is as before then.
    """
    config = as_config(config)
    if config.needs_calibration and statistics is None:
        raise EncodingError(
            "calibration is None: the fit and the scores 'wanda' and 'surgeon' need "
            "inputs; pass calibration, or fit=False and score='magnitude'"
        )
    reason = weight_obstacle(linear)
    if reason:
        raise EncodingError(
            f"{name or 'the layer'} cannot be pruned: {reason}. Legal is a weight of "
            "floats that the layer has itself"
        )
    weight, e = matrix_of(linear), config.pattern
    if e.is_shuffled and perm is not None:
        perm = checked_perm(perm, len(weight)).to(weight.device)
    scores = element_scores(weight, config.score, statistics)
    if e.is_shuffled and perm is None:
        perm = output_order(scores, e, config.density, config.seed, progress)
        perm = perm.to(weight.device)
    mask = pattern_mask(scores, e, config.density, perm)
    zero = torch.zeros((), dtype=weight.dtype, device=weight.device)
    pruned = torch.where(mask, weight, zero)
    total = float(scores.double().square().sum())
    kept = float((scores.double().square() * mask).sum())
    shape = (weight.shape[0], weight.shape[1])
    row = LayerReport(name, e, shape, 0.0, kept / total if total else 1.0, perm=perm)
    if config.weights is not None and not isinstance(linear, nn.Conv2d):
        row.weights, row.scales = config.weights, config.scales
        row.activations = config.activations
    if statistics is not None:
        row.tokens = statistics.tokens
        pruned = _fitted(linear, mask, pruned, config, statistics, row)
    write_matrix_(linear, pruned)
    row.zeros = float((pruned == 0).double().mean()) if pruned.numel() else 0.0
    return row


def _fitted(
    linear: nn.Module,
    mask: Tensor,
    pruned: Tensor,
    config: PruneConfig,
    statistics: Statistics,
    row: LayerReport,
) -> Tensor:
    """The weight after the fit. Sets the bias, and what the report says of errors."""
    weight, bias = matrix_of(linear), linear.bias
    energy = statistics.output_energy(weight)

    def relative(seen: Statistics, new: Tensor) -> float:
        ratio = float(seen.output_error(weight, new) / energy) if energy > 0 else 0.0
        return ratio**0.5

    row.error_before = row.error_after = relative(statistics, pruned)
    if not config.fit:
        if row.weights is None:
            return pruned
        found = round_weight(pruned, row.weights, row.scales)
        row.scale, row.error_after = found.scale, relative(statistics, found.weight)
        return found.weight
    moves_bias = bias is not None and config.fit_bias
    seen = statistics.centered() if moves_bias else statistics
    known = mask, seen.gram, _blended(seen, config.target), config.damping
    fitted = fit(weight, *known)
    row.damping, row.raised = fitted.damping, fitted.raised
    new = fitted.weight
    if row.weights is not None:
        rounded = round_fitted(new, weight, *known, row.weights, row.scales)
        row.scale, new = rounded.scale, rounded.weight
    row.error_after = relative(seen, new)
    if moves_bias and statistics.tokens:
        mean = wanted = statistics.sums / statistics.tokens
        if statistics.target_sums is not None:
            dense = statistics.target_sums / statistics.tokens
            wanted = mean.lerp(dense, config.target)
        change = weight.to(mean) @ wanted - new.to(mean) @ mean
        with torch.no_grad():
            bias += change.to(bias)
    return new


def _blended(statistics: Statistics, target: float) -> Optional[Tensor]:
    """X^T of the inputs X and the inputs for which outputs are wanted."""
    if statistics.cross is None or target == 0:
        return None
    return statistics.gram.lerp(statistics.cross, target)
