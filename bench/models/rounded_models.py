# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prunes and rounds the layers of a model, and makes layers of them that compute with
that rounding."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Sequence

import torch
from group_rounding import fitted_roundings
from number_formats import DENSE, Format, RoundedLinear, is_grouped
from torch import Tensor, nn

from nm_sparse.torch.prune import PruneConfig, prune_


@dataclass
class FittedLayer:
    """weight f32 [N, K], mask bool [N, K] or None, scale or None, bias or None, as
    `RoundedLinear` has them."""

    weight: Tensor
    mask: Optional[Tensor] = None
    scale: Optional[Tensor] = None
    bias: Optional[Tensor] = None


@dataclass
class FittedModel:
    """What a fit has made of the layers, by their names.

    zeros:        the share of zeros among the weights, before the rounding adds some.
    layer_error:  how far outputs are off, relative to their norm: the mean of layers.
    """

    layers: Dict[str, FittedLayer] = field(default_factory=dict)
    zeros: float = 0.0
    layer_error: float = 0.0


def fitted(
    dense: nn.Module,
    layers: str,
    pattern: str,
    elements: Optional[str],
    batches: Sequence[Any],
    blocks: str,
    **more: Any,
) -> FittedModel:
    """One-shot: importance by inputs, least squares, and roundings that know it.

    layers:   a pattern of the names of the layers, such as "model.layers.*".
    pattern:  an encoding, or `DENSE`, of which all elements are fitted to the rounding.
    elements: as of `Format`.
    blocks:   the name of the list of blocks.
    more:     for `PruneConfig`.
    """
    model = copy.deepcopy(dense)
    names = [name for name in _linears(model) if _matches(name, layers)]
    if pattern == DENSE and elements is None:
        return FittedModel(
            {name: FittedLayer(*_tensors(model, name)) for name in names}
        )
    # The package rounds to int8 where the config says so; the context may replace that.
    weights = "int8" if is_grouped(elements) else elements
    config = PruneConfig(
        "1:1" if pattern == DENSE else pattern,
        keep_larger=True,
        weights=weights,
        **more,
    )
    prune = functools.partial(
        prune_,
        model,
        {layers: config},
        batches,
        blocks=blocks,
        dtype=torch.float32,
        progress=False,
    )
    if elements is None:
        report, found = prune(), None
    else:
        with fitted_roundings(elements) as found:
            report = prune()
    own = [row.name for row in report.layers]
    if sorted(own) != sorted(names):
        left = sorted(set(names) - set(own))
        raise ValueError(f"{left[0]} has not been pruned: {report.left_dense}")
    result, zeros, count = FittedModel(), 0, 0
    for at, name in enumerate(own):
        weight, _, _, bias = _tensors(model, name)
        mask = weight != 0 if found is None else found.masks[at]
        zeros, count = zeros + int((~mask).sum()), count + mask.numel()
        scale = None if found is None else found.scales[at]
        kept = None if pattern == DENSE else mask.to(weight.device)
        result.layers[name] = FittedLayer(weight, kept, scale, bias)
    result.zeros = zeros / count
    errors = [row.error_after or 0.0 for row in report.layers]
    result.layer_error = sum(errors) / len(errors)
    return result


def rounded(
    dense: nn.Module, fit: FittedModel, form: Format, dtype: torch.dtype
) -> nn.Module:
    """A copy of a model whose layers are those of a fit and compute in a format."""
    model = copy.deepcopy(dense)
    for name, layer in fit.layers.items():
        parent, _, last = name.rpartition(".")
        linear = model.get_submodule(name)
        with torch.no_grad():
            linear.weight.copy_(layer.weight)
            if layer.bias is not None:
                linear.bias.copy_(layer.bias)
        own = RoundedLinear(linear, form, layer.mask, layer.scale, dtype)
        setattr(model.get_submodule(parent), last, own)
    return model.requires_grad_(True)


def shapes_of(fit: FittedModel) -> list:
    """[N, K] of each layer."""
    return [tuple(layer.weight.shape) for layer in fit.layers.values()]


def _linears(model: nn.Module) -> Sequence[str]:
    return [n for n, part in model.named_modules() if isinstance(part, nn.Linear)]


def _matches(name: str, layers: str) -> bool:
    return name.startswith(layers.rstrip("*"))


def _tensors(model: nn.Module, name: str) -> tuple:
    linear = model.get_submodule(name)
    bias = None if linear.bias is None else linear.bias.detach().clone()
    return linear.weight.detach().clone(), None, None, bias
