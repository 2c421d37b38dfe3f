# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that quantize their input, called outside of graphs and without gradients, as
`eager.py` calls others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import torch
from torch import Tensor

from ..weight.plain import is_plain_call
from ..weight.quantize import quantize_tokens
from ..weight.spec import LinearSpec, common_dense_from
from ..weight.weight import PackedWeight
from .eager import EagerCall, Launch, count_of_settings, look, records
from .scaled_kernels import find_layers, stored_weights

if TYPE_CHECKING:
    from .linear import NMLinear


class _ScaledLaunch(Launch):
    """Kernels that are given elements and scales.

    elements:     short name of their type.
    input_scale:  of all tokens, or None.
    scales:       of the weights.
    dtype:        of results.
    least:        number of elements of x from which on dense copies are used; None:
                  they never are.
    """

    elements: str
    input_scale: Optional[Tensor]
    scales: Sequence[Tensor]
    dtype: torch.dtype
    least: Optional[int]

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        if self.least is not None and x.numel() >= self.least:
            return None
        rounded, x_scale = quantize_tokens(x, self.elements, self.input_scale)
        lead, rows = x.shape[:-1], rounded.reshape(-1, x.shape[-1])
        results = [
            x.new_empty((*lead, size), dtype=self.dtype) for size in self.outputs
        ]
        flat = [y.view(-1, size) for y, size in zip(results, self.outputs)]
        others = x_scale.reshape(-1), *self.scales, *self.biases
        done = self.direct(self.stream, rows, *self.weights, *others, *flat)
        return None if done is None else results


class ScaledCall(EagerCall):
    """The kernels of one layer, or of several with one input, found once."""

    def call(
        self,
        x: Tensor,
        layers: Sequence["NMLinear"],
        activation: Optional[str] = None,
        gated: bool = False,
    ) -> Optional[List[Tensor]]:
        """The results [..., N] for x [..., K]; None where operators have to compute
        them.

        activation:  of the first layer; its own by default.
        gated:       whether the layers are gate and up of an MLP.
        """
        if not is_plain_call(x) or x.ndim < 1 or x.numel() == 0:
            return None
        weights, parts, biases = [], [], []
        for layer in layers:
            weight, bias = layer._parameters.get("weight"), layer._parameters["bias"]
            if type(weight) is not PackedWeight or weight.has_dense_gradient:
                return None
            weights.append(weight)
            parts += weight.parts
            if bias is not None:
                biases.append(bias)
        first = layers[0]
        scale = first.input_scale
        if x.shape[-1] != first.in_features or x.dtype != weights[0].scaled_dtype:
            return None
        if x.device != parts[0].device or records(x, weights, biases):
            return None
        seen = parts if scale is None else [*parts, scale]
        stream = torch._C._cuda_getCurrentRawStream(x.get_device())
        variant = f"{first.activations} {activation} {gated}"
        launch: Any = self._launch
        if launch is None or not launch.fits(seen, biases, stream, variant):
            self._launch = None  # gives its memory back first
            own = activation, gated, stream, variant
            launch = self._make(seen, biases, layers, *own)
            self._launch = launch
        if launch is None:
            return None
        return launch.run(x if x.is_contiguous() else x.contiguous())

    def _make(
        self,
        parts: Sequence[Tensor],
        biases: Sequence[Tensor],
        layers: Sequence["NMLinear"],
        activation: Optional[str],
        gated: bool,
        stream: int,
        variant: str,
    ) -> Optional[_ScaledLaunch]:
        first, device = layers[0], parts[0].device
        dtype = first.weight.dtype
        if any(one.is_inference() or one.device != device for one in parts):
            return None
        if any(not one.is_contiguous() or one.device != device for one in biases):
            return None
        if any(one.dtype != dtype for one in biases):
            return None
        seen, settings = look(parts), count_of_settings()
        specs = [LinearSpec.parse(layer.spec) for layer in layers]
        if activation is not None:
            specs[0] = specs[0].with_activation(activation)
        found = [
            (layer.components(), layer.bias, spec) for layer, spec in zip(layers, specs)
        ]
        kind = "token" if first.input_scale is None else "tensor"
        made = find_layers(found, kind, gated, device)
        if made is None or not made.function.writes_to_arguments:
            return None
        stored = stored_weights(made, found)
        launch = _ScaledLaunch(made, stored, seen, biases, stream, variant, settings)
        launch.elements, launch.input_scale = first.activations, first.input_scale
        launch.scales = [weight[-1] for weight, _, _ in found]
        launch.dtype = dtype
        dense_from = common_dense_from(layer.dense_from for layer in layers)
        launch.least = None if dense_from is None else dense_from * first.in_features
        return launch
