# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs the layers that `prune_` has pruned, each in its pattern and order."""

from __future__ import annotations

from typing import Any, Dict

from torch import nn

from ...encoding import EncodingError
from ..layers.conv2d import NMConv2d
from ..layers.linear import NMLinear
from ..pretrained.marking import mark_pretrained
from .linears import is_dense_linear, replace_modules
from .obstacles import Surroundings, obstacle
from .report import PruneReport


def pack_(model: nn.Module, report: PruneReport) -> None:
    """Replaces the layers of a report by `NMLinear` or `NMConv2d` in place, wherever
    they are in the model. Nothing is pruned further, and shuffled weights keep their
    order.

    Raises EncodingError, and leaves the model as it was, when a layer cannot be packed
    (by the rule of `prune_` and `sparsify_`), a weight does not obey its pattern any
    more, or its encoding is `free`, which NMLinear does not have.
    """
    around = Surroundings(model)
    layers = {row.name: model.get_submodule(row.name) for row in report.layers}
    for name, layer in layers.items():
        if not name or not is_dense_linear(layer):
            raise EncodingError(
                f"{name or 'the model'} is a {type(layer).__name__}: legal is an "
                "nn.Linear, an nn.Conv2d or a Conv1D in a model; use from_dense of "
                "NMLinear or NMConv2d"
            )
        reason = obstacle(layer, around)  # type: ignore[arg-type]
        if reason:
            raise EncodingError(f"{name} cannot be packed: {reason}")
    packed: Dict[nn.Module, nn.Module] = {}
    for row in report.layers:
        layer = layers[row.name]
        try:
            kind: Any = NMConv2d if isinstance(layer, nn.Conv2d) else NMLinear
            elements = {} if row.weights is None else {
                "elements": row.weights,
                "activations": row.activations,
                "scales": row.scales,
                "scale": row.scale,
            }  # fmt: skip
            packed[layer] = kind.from_dense(
                layer, row.encoding, prune=False, perm=row.perm, **elements
            )
        except EncodingError as error:
            raise EncodingError(f"{row.name}: {error}") from None
    replace_modules(model, packed)
    mark_pretrained(model)
