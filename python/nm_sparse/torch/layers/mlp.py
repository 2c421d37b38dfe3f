# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of transformer blocks whose linear layers share an input: `GatedMLP`, and
`shared_linear` for layers such as those of queries, keys and values."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..weight.shared_spec import whole_text, with_activation, with_dense_from
from ..weight.spec import ACTIVATIONS, LinearSpec, common_dense_from
from ..weight.token_counts import for_rows
from . import shared_kernels
from .eager import EagerCall
from .joined import are_joined, joined_linear
from .linear import NMLinear
from .ops import activate
from .scaled_calls import call_gated, call_shared
from .scaled_linear import SAME

HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)

# Why two layers are no gated MLP although they were one in one form.
STORED_OTHERWISE = "gate_proj and up_proj are stored in different forms"


def is_plain(layer: Any) -> bool:
    """Whether a layer is a packed one that computes x W^T + bias and nothing else."""
    if type(layer) is not NMLinear or layer.activation != "none":
        return False
    if "forward" in layer.__dict__:  # as libraries that place layers do
        return False
    return not any(getattr(layer, hooks) for hooks in HOOKS)


def _is_of_four(layer: NMLinear) -> bool:
    """Whether sparse tensor cores multiply by the weight as it is."""
    encoding = layer.encoding
    return (encoding.m, encoding.block) == (4, (1, 1)) and len(encoding.levels) == 1


class GatedMLP(nn.Module):
    """down(activation(gate(x)) * up(x)) as one operator, or gate and up as one.

    gate_proj, up_proj, down_proj:  linear layers, dense or packed, of any device. They
                 keep these names, so a `state_dict` is that of the module which they
                 come from.
    activation:  "silu", "gelu", "gelu_tanh", "relu" or "none".

    Gate and up are `nm_sparse::gated_mlp` while they are packed by one encoding, are
    stored in one form, and have no bias and no hooks; all three are `nm_sparse::mlp`
    while down is packed, too, in any encoding and form, without bias and hooks, for as
    many outputs as gate has inputs. What is between the products then stays as their
    kernels like it; those of n:4 like it as it is, and stay apart. With activations of
    8 bits gate and up are given one input that is rounded once, and are
    `nm_sparse::scaled_gated_mlp`. Layers may be replaced at any time, as `sparsify_`
    does. Otherwise they are called one after the other. Input [..., hidden], output
    [..., hidden].

    Raises EncodingError for another activation.
    """

    def __init__(
        self,
        gate_proj: nn.Module,
        up_proj: nn.Module,
        down_proj: nn.Module,
        activation: str = "silu",
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise EncodingError(
                f"activation is {activation!r}: legal is {', '.join(ACTIVATIONS)}"
            )
        self.gate_proj, self.up_proj, self.down_proj = gate_proj, up_proj, down_proj
        self.activation = activation
        self._eager = EagerCall()

    def obstacle(self) -> Optional[str]:
        """Why gate and up are no single operator now; None where they are."""
        gate, up = self.gate_proj, self.up_proj
        for name, layer in (("gate_proj", gate), ("up_proj", up)):
            if not is_plain(layer):
                return f"{name} is no packed layer without activation and hooks"
            if layer.bias is not None:
                return f"{name} has a bias"
        if gate.kernel_spec != up.kernel_spec:
            if gate.storage != up.storage:
                return STORED_OTHERWISE
            return "gate_proj and up_proj have other encodings, shapes or types"
        if gate.activations != up.activations:
            return "gate_proj and up_proj have other activations"
        return None

    def is_whole(self) -> bool:
        """Whether down is in the operator, if gate and up are one.

        Sparse tensor cores want no other layout between products, and kernels that
        were chosen for three of them took longer: docs/decisions/075-whole-mlps.md.
        """
        gate, down = self.gate_proj, self.down_proj
        return (
            is_plain(down)
            and not (_is_of_four(gate) and _is_of_four(down))
            and down.bias is None
            and down.out_features == gate.in_features
            and down.in_features == gate.out_features
            and down.weight.dtype == gate.weight.dtype
            and gate.activations == down.activations == SAME
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.obstacle() is not None:
            inside = activate(self.gate_proj(x), self.activation) * self.up_proj(x)
        elif self.is_whole():
            return self._whole(x)
        else:
            inside = self._gated(x)
        return self.down_proj(inside)

    def _whole(self, x: Tensor) -> Tensor:
        gate, up, down = self.gate_proj, self.up_proj, self.down_proj
        found = self._eager(x, (gate, up, down), self._find_eager, self.activation)
        if found is not None:
            return found[0]
        specs = for_rows(self._gate_spec(), x), for_rows(down.spec, x)
        spec = whole_text(*specs, self.activation)
        parts = gate.operands(), up.operands(), down.operands()
        return torch.ops.nm_sparse.mlp(x, *parts, spec)

    def _gated(self, x: Tensor) -> Tensor:
        """What down is applied to, as one operator."""
        gate, up = self.gate_proj, self.up_proj
        if gate.activations != SAME:
            spec = for_rows(self._gate_spec(), x)
            return call_gated(x, gate, up, spec, self.activation)
        found = self._eager(x, (gate, up), self._find_eager, self.activation)
        if found is not None:
            return found[0]
        spec = with_activation(for_rows(self._gate_spec(), x), self.activation)
        return torch.ops.nm_sparse.gated_mlp(x, gate.operands(), up.operands(), spec)

    def _gate_spec(self) -> str:
        """That of gate and up without activation, which the operators are told once."""
        both = common_dense_from([self.gate_proj.dense_from, self.up_proj.dense_from])
        return with_dense_from(self.gate_proj.kernel_spec, both)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._eager.forget()
        return super()._apply(fn, recurse)

    def _find_eager(self) -> Any:
        layers = [self.gate_proj, self.up_proj]
        spec = LinearSpec.parse(with_activation(self.gate_proj.spec, self.activation))
        specs, device = [spec, spec], self.gate_proj.weight.device
        if self.is_whole():
            layers.append(self.down_proj)
            specs.append(LinearSpec.parse(self.down_proj.spec))
            made = shared_kernels.find_mlp(spec.canonical, specs[-1].canonical, device)
        else:
            made = shared_kernels.find_gated(spec.canonical, device)
        return shared_kernels.find_eager(
            made, [layer.components() for layer in layers], specs
        )

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


def shared_linear(x: Tensor, layers: Sequence[NMLinear]) -> List[Tensor]:
    """What several packed layers make of one input, by `nm_sparse::linear_shared`.

    x:  [..., K]. The layers must be packed, without activation.

    Returns [..., N] for each layer.
    """
    kinds = {layer.activations for layer in layers}
    if kinds != {SAME}:
        is_one = len(kinds) == 1
        return call_shared(x, layers) if is_one else [layer(x) for layer in layers]
    found = layers[0].eager_shared(x, layers, lambda: _find_shared(layers))
    if found is not None:
        return found
    if are_joined(x, layers):
        return joined_linear(x, None, layers)
    parts = [layer.operands() for layer in layers]
    weights = [part for one in parts for part in one]
    counts = [len(one) for one in parts]
    spec = f"[{','.join([for_rows(layer.spec, x) for layer in layers])}]"
    biases = [layer.bias for layer in layers]
    return torch.ops.nm_sparse.linear_shared(x, weights, counts, biases, spec)


def _find_shared(layers: Sequence[NMLinear]) -> Any:
    weights = [layer.components() for layer in layers]
    specs = tuple(LinearSpec.parse(layer.spec) for layer in layers)
    biases = tuple(layer.bias is not None for layer in layers)
    canonical = tuple(spec.canonical for spec in specs)
    made = shared_kernels.find_shared(canonical, biases, weights[0][0].device)
    return shared_kernels.find_eager(made, weights, specs)
