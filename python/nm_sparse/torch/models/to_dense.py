# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`to_dense_`: the way back from `sparsify_`."""

from __future__ import annotations

from typing import List, Optional

from torch import nn

from ...encoding import EncodingError
from ..layers.conv2d import NMConv2d
from ..layers.linear import NMLinear
from ..prune.choices import Filter
from ..prune.linears import replace_modules
from ..prune.obstacles import HOOKS


def to_dense_(model: nn.Module, filter_fn: Optional[Filter] = None) -> List[str]:
    """Replaces `NMLinear` and `NMConv2d` of `model` by dense layers with the same
    weights, in place: `sparsify_` back, with zeros where it has pruned. For tools that
    know no packed layers, such as ONNX or TorchScript. What was a `Conv1D` of
    transformers is one again.

    filter_fn:  called with each packed layer and its name: False leaves it as it is.

    A layer with an activation becomes an `nn.Sequential` of both. Returns the names of
    the layers. Raises EncodingError, and leaves the model as it was, when a layer has
    hooks, which the dense one would not call, or is the model itself.
    """
    found = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, (NMLinear, NMConv2d))
        and (not filter_fn or filter_fn(layer, name))
    }
    for name, layer in found.items():
        if not name:
            raise EncodingError(
                "model is a packed layer, which cannot be replaced in place: use "
                "its to_dense"
            )
        if any(getattr(layer, kind) for kind in HOOKS):
            raise EncodingError(
                f"{name} has hooks, which the dense layer would not call: remove them, "
                "or leave it out by filter_fn"
            )
    replace_modules(model, {layer: layer.to_dense() for layer in found.values()})
    return list(found)
