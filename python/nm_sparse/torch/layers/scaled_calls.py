# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of layers that quantize their input: once for all layers that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

import torch
from torch import Tensor

from ...encoding import EncodingError
from ..weight.quantize import quantize_alone, quantize_tokens
from ..weight.shared_spec import with_activation
from ..weight.token_counts import for_rows
from . import scaled_training  # noqa: F401  defines its operator
from .feature_major import asks_feature_major
from .joined import are_joined, joined_linear

if TYPE_CHECKING:
    from .linear import NMLinear


def _records(x: Tensor, biases: Sequence[Optional[Tensor]]) -> bool:
    """Whether gradients are recorded."""
    if not torch.is_grad_enabled():
        return False
    return x.requires_grad or any(
        [bias is not None and bias.requires_grad for bias in biases]
    )


def _check_type(x: Tensor, dtype: torch.dtype) -> None:
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise EncodingError(
            f"x is {x.dtype} and the weight stands for {dtype}: legal is the same "
            "type; convert one with .to(), or use torch.autocast"
        )


def quantized_linear(
    x: Tensor,
    elements: str,
    scale: Optional[Tensor],
    weight: List[Tensor],
    bias: Optional[Tensor],
    spec: str,
    feature_major: bool = False,
) -> Tensor:
    """activation(x W^T + bias) with x rounded to elements.

    x:         [..., K].
    elements:  "e4m3" or "int8", as those of the weight.
    scale:     f32 [], of all tokens; None: each has its own.
    weight:    the components.
    spec:      the text of the layer's `LinearSpec`.
    feature_major:  whether elements are stored so.

    Returns [..., N] in the type that the weight stands for. Gradients of x are those of
    the same product without rounding.
    """
    rounded, x_scale = quantize_alone(x, elements, scale, feature_major)
    if _records(x, [bias]):
        return torch.ops.nm_sparse.straight_through_linear(
            x, rounded, x_scale, weight, bias, spec
        )
    return torch.ops.nm_sparse.scaled_linear(rounded, x_scale, weight, bias, spec)


def call_layer(x: Tensor, layer: "NMLinear", spec: str) -> Tensor:
    """The result of a layer whose `activations` are elements."""
    _check_type(x, layer.weight.dtype)
    own = layer.activations, layer.input_scale, layer.operands()
    layout = asks_feature_major(x, [layer], [spec])
    return quantized_linear(x, *own, layer.bias, spec, layout)


def call_shared(x: Tensor, layers: Sequence["NMLinear"]) -> List[Tensor]:
    """The results of layers that share their input and its elements. The scale of all
    tokens, if there is one, is that of the first."""
    first = layers[0]
    found = first.eager_shared_elements.call(x, layers)
    if found is not None:
        return found
    _check_type(x, first.weight.dtype)
    own = first.activations, first.input_scale
    if are_joined(x, layers):
        return joined_linear(*quantize_tokens(x, *own), layers)
    biases = [layer.bias for layer in layers]
    specs = [for_rows(layer.spec, x) for layer in layers]
    layout = asks_feature_major(x, layers, specs)
    rounded, x_scale = quantize_tokens(x, *own, layout)
    if _records(x, biases):
        product = torch.ops.nm_sparse.straight_through_linear
        return [
            product(x, rounded, x_scale, layer.operands(), layer.bias, spec)
            for layer, spec in zip(layers, specs)
        ]
    parts = [layer.operands() for layer in layers]
    weights = [part for one in parts for part in one]
    counts = [len(one) for one in parts]
    spec = f"[{','.join(specs)}]"
    product = torch.ops.nm_sparse.scaled_linear_shared
    return product(rounded, x_scale, weights, counts, biases, spec)


def call_halved(x: Tensor, layer: "NMLinear", activation: str) -> Tensor:
    """activation(gate) * up of a layer whose outputs are both, without gradients."""
    _check_type(x, layer.weight.dtype)
    plain = for_rows(layer.spec, x)
    layout = asks_feature_major(x, [layer], [plain])
    own = layer.activations, layer.input_scale
    rounded, x_scale = quantize_tokens(x, *own, layout)
    spec = with_activation(plain, activation)
    product = torch.ops.nm_sparse.scaled_gated_linear
    return product(rounded, x_scale, layer.operands(), spec)


def call_gated(
    x: Tensor, gate: "NMLinear", up: "NMLinear", spec: str, activation: str
) -> Tensor:
    """activation(gate(x)) * up(x), with one scale as `call_shared`.

    spec:  of both, without activation.
    """
    found = gate.eager_shared_elements.call(x, (gate, up), activation, True)
    if found is not None:
        return found[0]
    _check_type(x, gate.weight.dtype)
    own, other = gate.operands(), up.operands()
    activated = with_activation(spec, activation)
    layout = asks_feature_major(x, [gate, up], [activated, spec], True)
    settings = gate.activations, gate.input_scale
    rounded, x_scale = quantize_tokens(x, *settings, layout)
    if _records(x, []):
        product = torch.ops.nm_sparse.straight_through_linear
        first = product(x, rounded, x_scale, own, None, activated)
        return first * product(x, rounded, x_scale, other, None, spec)
    return torch.ops.nm_sparse.scaled_gated_mlp(rounded, x_scale, own, other, activated)
