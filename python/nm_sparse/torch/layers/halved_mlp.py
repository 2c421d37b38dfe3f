# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A gated MLP whose gate and up are one layer: `HalvedMLP`."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..weight.shared_spec import with_activation
from ..weight.spec import ACTIVATIONS, LinearSpec
from ..weight.token_counts import for_rows
from . import halved_ops
from .eager import EagerCall, is_plain_call
from .halved_ops import gate, has_halves
from .mlp import is_plain
from .scaled_calls import call_halved
from .scaled_linear import SAME


class HalvedMLP(nn.Module):
    """down(activation(gate) * up), where gate_up(x) is gate and up side by side.

    gate_up_proj, down_proj:  linear layers, dense or packed, of any device. They keep
                 these names, so a `state_dict` is that of the module which they come
                 from.
    activation:  "silu", "gelu", "gelu_tanh", "relu" or "none".

    Gate and up are `nm_sparse::gated_linear` while their layer is packed by one level
    whose panels divide both halves, and has no bias and no hooks; with activations of
    8 bits they are `nm_sparse::scaled_gated_linear` in graphs without gradients. It may
    be replaced at any time, as `sparsify_` does. Otherwise layers are called one after
    the other. Input [..., hidden], output [..., hidden].

    Raises EncodingError for another activation.
    """

    def __init__(
        self,
        gate_up_proj: nn.Module,
        down_proj: nn.Module,
        activation: str = "silu",
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise EncodingError(
                f"activation is {activation!r}: legal is {', '.join(ACTIVATIONS)}"
            )
        self.gate_up_proj, self.down_proj = gate_up_proj, down_proj
        self.activation = activation
        self._eager = EagerCall()

    def obstacle(self) -> Optional[str]:
        """Why gate and up are no single operator now; None where they are."""
        layer: Any = self.gate_up_proj
        if not is_plain(layer):
            return "gate_up_proj is no packed layer without activation and hooks"
        if layer.bias is not None:
            return "gate_up_proj has a bias"
        if layer.elements is not None and layer.activations == SAME:
            return "gate_up_proj has elements of 8 bits, and its input has none"
        if not has_halves(layer.encoding, layer.out_features):
            return "the panels of gate_up_proj do not divide its halves"
        return None

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self._inside(x))

    def _inside(self, x: Tensor) -> Tensor:
        """What down is applied to."""
        layer: Any = self.gate_up_proj
        if self.obstacle() is not None:
            return gate(layer(x), self.activation)
        if layer.activations != SAME:
            # Eager calls of the layer take the host less time.
            if torch.is_grad_enabled() or is_plain_call(x):
                return gate(layer(x), self.activation)
            return call_halved(x, layer, self.activation)
        if not torch.is_grad_enabled() and is_plain_call(x):
            find, variant = self._find_eager, self.activation
            found = self._eager(x, (layer,), find, variant)
            # Kernels that read another form multiply by the whole weight.
            return gate(layer(x), variant) if found is None else found[0]
        spec = with_activation(for_rows(layer.spec, x), self.activation)
        return torch.ops.nm_sparse.gated_linear(x, layer.operands(), spec)

    def _find_eager(self) -> Any:
        layer: Any = self.gate_up_proj
        spec = LinearSpec.parse(with_activation(layer.spec, self.activation))
        return halved_ops.find_eager(layer.components(), spec)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._eager.forget()
        return super()._apply(fn, recurse)

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
