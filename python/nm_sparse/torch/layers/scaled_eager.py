# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that quantize their input, called outside of graphs and without gradients, as
`eager.py` calls others.

Few tokens are rounded and multiplied by one call in C; many that a product reads
feature-major are rounded so by another call, which takes the host longer than kernels
for few tokens take the GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import torch
from torch import Tensor

from ..weight.plain import is_plain_call
from ..weight.quantize import quantize_tokens
from ..weight.quantize_launch import row_kernel
from ..weight.spec import LinearSpec, common_dense_from
from .eager import EagerCall, Found, Launch, find_weights
from .feature_major import asks_for_any_tokens
from .scaled_kernels import find_layers, stored_weights

if TYPE_CHECKING:
    from .linear import NMLinear


# Numbers of x from which on elements are stored feature-major, where kernels read them
# so: these take longer then than the host needs to launch them.
_MANY = 1 << 22


class _ScaledLaunch(Launch):
    """Kernels that are given elements and scales.

    elements:     short name of their type.
    input_scale:  of all tokens, or None.
    least:        number of elements of x from which on dense copies are used; None:
                  they never are.
    columns:      the same of elements that are stored feature-major, or None.
    """

    columns: Optional[Launch] = None
    elements: str
    input_scale: Optional[Tensor]
    least: Optional[int]
    # Rounds x and multiplies by one call; False: there is none, None: not looked for.
    _rounded: Any = None

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        if self.least is not None and x.numel() >= self.least:
            return None
        if self.columns is not None and x.numel() >= _MANY and self.found.takes(x):
            return self.run_columns(self.columns, x)
        if self._rounded:
            results = self._rounded(x)
            if results is not None:
                return results
        if not self.found.takes(x):
            return None
        if self._rounded is None:
            self._rounded = self._find_rounded(x)
        rounded, scale = quantize_tokens(x, self.elements, self.input_scale)
        rows = rounded.view(-1, rounded.shape[-1])
        scales = () if self.input_scale is not None else (scale.view(-1),)
        return self.run_sparse(x, rows, *scales)

    def run_columns(self, columns: Launch, x: Tensor) -> Optional[List[Tensor]]:
        """The results for x, which is rounded feature-major for these kernels."""
        rounded, scale = quantize_tokens(x, self.elements, self.input_scale, True)
        rows = rounded.view(-1, rounded.shape[-1])
        scales = () if self.input_scale is not None else (scale.view(-1),)
        return columns.run_sparse(x, rows.t(), *scales)

    def _find_rounded(self, x: Tensor) -> Any:
        with_rounder = getattr(self.bound, "with_rounder", None)
        if with_rounder is None:
            return False
        kernel = row_kernel(x, self.elements, self.input_scale)
        return (kernel and with_rounder(kernel)) or False


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
        if not is_plain_call(x):
            return None
        stream = torch._C._cuda_getCurrentRawStream(x.get_device())
        variant = activation, gated
        launch = self._launch
        if launch is None or not launch.fits(layers, stream, variant):
            found = find_weights(x, layers, stream, variant, True)
            if found is None or found.records(x):
                return None
            self._launch = None  # gives its memory back first
            launch = self._launch = _make(x, layers, found, activation, gated)
        if launch is None or launch.records(x):
            return None
        return launch.run(x)


def _make(
    x: Tensor,
    layers: Sequence["NMLinear"],
    found: Found,
    activation: Optional[str],
    gated: bool,
) -> Optional[_ScaledLaunch]:
    first: Any = layers[0]
    if any(one.dtype != found.dtype for one in found.biases):
        return None
    specs = [LinearSpec.parse(layer.spec) for layer in layers]
    if activation is not None:
        specs[0] = specs[0].with_activation(activation)
    own = [(layer.components(), layer.bias, spec) for layer, spec in zip(layers, specs)]
    scale = first.input_scale
    made = find_layers(own, "token" if scale is None else "tensor", gated, found.device)
    if made is None or not made.function.writes_to_arguments:
        return None
    given = None if scale is None else scale.detach().view(1)
    others = given, *[weight[-1] for weight, _, _ in own], *found.biases
    launch = _ScaledLaunch(made, stored_weights(made, own), others, found)
    launch.elements, launch.input_scale = first.activations, scale
    dense_from = common_dense_from(layer.dense_from for layer in layers)
    launch.least = None if dense_from is None else dense_from * first.in_features
    texts = [spec.text for spec in specs]
    # However many tokens this x has: later calls and captured ones have these kernels
    # then, which are loaded here, by a single token.
    if asks_for_any_tokens(x, layers, texts, gated):
        about = "token" if scale is None else "tensor", gated, found.device
        other = find_layers(own, *about, True)
        if other is not None and other.function.writes_to_arguments:
            launch.columns = Launch(other, launch.weights, others, found)
            launch.run_columns(launch.columns, x.reshape(-1, x.shape[-1])[:1])
    return launch
