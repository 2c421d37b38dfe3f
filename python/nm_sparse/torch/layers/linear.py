# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear layer whose weight is packed: `NMLinear`, in the place of `nn.Linear`."""

from __future__ import annotations

from typing import Any, List, Optional, Union

import torch
from torch import Tensor, nn

from ...encoding import Encoding, packed_shapes
from .eager import EagerCall, settings_changed
from .masks import Score, prune_weight
from .packed_module import PackedModule
from .shared_spec import with_dense_from
from .spec import NARROW, LinearSpec, check_dense_from, component_types, linear_encoding
from .weight import PackedWeight

_MODULES = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
}


class NMLinear(PackedModule):
    """y = activation(x W^T + b) with a packed weight W of `encoding`.

    in_features, out_features:  K and N.
    encoding:    an Encoding or its text, such as "8:32, block = [1, 128]"; block is
                 [along the inputs, along the outputs].
    bias:        whether there is one.
    activation:  "none", or "relu", "gelu", "gelu_tanh", "silu", computed by the same
                 kernel.

    A new layer has a weight of zeros that keeps the first blocks of every window: it is
    for `load_state_dict`. `from_dense` makes one of a dense layer.

    The parameter `values` has the elements that are kept, and optimizers train it like
    any other; the buffers `index`, `inner_index` and `perm` say where they are. So
    training never leaves the pattern. Change them under `torch.no_grad()`. What changes
    them without torch's counting it, such as `.data`, replays of a CUDA graph, or FSDP,
    hides that from kernels that read another form of the weight: then call
    `torch.autograd.graph.increment_version(layer.values)`. Weights of 8 bits are not
    trained. Forward-mode derivatives are not supported. `storage` is the form of the
    weight: "canonical", until `store_` changes it. `dense_from` says for how many
    tokens a dense copy is used on a GPU: none, until it is set. Input [..., K] of any
    batch shape, output [..., N].

    Raises EncodingError when the encoding is no encoding of a linear layer.
    """

    bias: Optional[nn.Parameter]
    _dense_from: Optional[int] = None
    # Whether `dense_from`, or that there is none, was found by predicted times.
    is_dense_from_timed = False

    def __init__(
        self,
        in_features: int,
        out_features: int,
        encoding: Union[Encoding, str],
        bias: bool = True,
        activation: str = "none",
        device: Any = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        super().__init__()
        e, shape = linear_encoding(encoding), (out_features, in_features)
        dtype = dtype or torch.get_default_dtype()
        types, parts = component_types(e, dtype), {}
        for name, size in packed_shapes(e, shape).items():
            parts[name] = torch.zeros(size, dtype=types[name], device=device)
        for name, level in zip(("index", "inner_index"), e.levels):
            first = torch.arange(level.n, device=device).to(types[name])
            windows, panels = parts[name].shape[0] // level.n, parts[name].shape[1]
            parts[name] = first.repeat(windows)[:, None].repeat(1, panels)
        if e.is_shuffled:
            parts["perm"] = torch.arange(out_features, device=device).to(torch.int32)
        wide = torch.get_default_dtype() if dtype in NARROW else dtype
        zeros = torch.zeros(out_features, dtype=wide, device=device) if bias else None
        self._set(PackedWeight(parts, e, torch.Size(shape)), zeros, activation)

    def _set(
        self, weight: PackedWeight, bias: Optional[Tensor], activation: str
    ) -> None:
        self.out_features, self.in_features = weight.shape
        self.encoding, self.activation = weight.encoding, activation
        self._eager = EagerCall()
        self.eager_shared = EagerCall()  # of layers that begin with this one
        self._hold(list(weight.components.values()), "canonical", is_trained=True)
        self.register_parameter(
            "bias", None if bias is None else nn.Parameter(bias.detach())
        )

    @classmethod
    def from_packed(
        cls,
        weight: PackedWeight,
        bias: Optional[Tensor] = None,
        activation: str = "none",
    ) -> "NMLinear":
        """A layer with these tensors, which are not copied."""
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer._set(weight, bias, activation)
        return layer

    @classmethod
    def from_dense(
        cls,
        linear: nn.Linear,
        encoding: Union[Encoding, str],
        score: Score = "magnitude",
        prune: bool = True,
        activation: str = "none",
        perm: Optional[Tensor] = None,
    ) -> "NMLinear":
        """The layer that keeps of `linear` what `encoding` allows.

        score:       what is kept: "magnitude", non-negative importances [N, K] of the
                     elements, or a function of the weight that returns them.
        prune:       False where the weight has the pattern and must not be changed.
        activation:  what follows the layer, and is computed by the same kernel.
        perm:        [N], the order of the outputs of a shuffled encoding; found by
                     default.

        The bias is copied. Raises EncodingError when the encoding, scores or perm do
        not fit, and, without `prune`, when the weight breaks the pattern.
        """
        weight = linear.weight.detach()
        if prune:
            weight, perm = prune_weight(weight, encoding, score, perm)
        packed = PackedWeight.from_dense(weight, encoding, perm)
        bias = None if linear.bias is None else linear.bias.detach().clone()
        layer = cls.from_packed(packed, bias, activation)
        if not linear.weight.requires_grad:
            layer.values.requires_grad_(False)
        if linear.bias is not None and layer.bias is not None:
            layer.bias.requires_grad_(linear.bias.requires_grad)
        return layer.train(linear.training)

    def to_dense(self) -> nn.Module:
        """An `nn.Linear` with the same weight and bias, and zeros where nothing is
        kept; followed by the activation in an `nn.Sequential` if there is one."""
        weight = self.weight.to_dense().detach()
        size = (self.in_features, self.out_features)
        linear = nn.Linear(*size, bias=False, device="meta")
        linear.weight = nn.Parameter(weight, requires_grad=self.values.requires_grad)
        if self.bias is not None:
            bias = self.bias.detach().clone()
            linear.bias = nn.Parameter(bias, requires_grad=self.bias.requires_grad)
        dense: nn.Module = linear
        if self.activation != "none":
            dense = nn.Sequential(linear, _MODULES[self.activation]())
        return dense.train(self.training)

    @property
    def weight(self) -> PackedWeight:
        """The packed weight in canonical form: the tensors of this layer, not copies;
        of a layer that is stored as bitmaps a copy, which asks for no gradients."""
        return self._canonical()

    def store_(self, storage: str) -> "NMLinear":
        """Stores the weight in another form, in place, and in no other.

        storage:  "canonical": `values` and `index`, which can be trained, and of which
                  kernels make what they read, beside it; or "bitmap", which many
                  kernels read as it is (section 7 of docs/Encoding.md), for inference.

        Bitmaps have the buffer `bits` in the place of the last index, and `values` in
        another order, which stop requiring gradients; back in the canonical form they
        do so after `requires_grad_()`. Going back gives the same bits. A `state_dict`
        has the canonical form, a copy; `load_state_dict` takes it. Where `to` gives the
        elements a type of another size, bitmaps are made anew, and a type of 8 bytes,
        which has none, leaves the canonical form.

        Returns the layer. Raises EncodingError when its weight has no such form:
        bitmaps need elements of at most 4 bytes and, of two levels, outer panels of a
        multiple of 32 outputs.
        """
        self._store(storage)
        from .kernels import drop_stored_forms

        drop_stored_forms()
        return self

    def operands(self) -> List[Tensor]:
        """The components as the operator takes them, in the form `storage`. Where no
        gradients are recorded they ask for none, which tells kernels that they are not
        trained here; but `torch.jit.trace` wants the same graph both ways."""
        is_recorded = torch.is_grad_enabled() or torch.jit.is_tracing()
        values = self.values if is_recorded else self.values.detach()
        return [values, *(getattr(self, name) for name in self._names[1:])]

    def _forget(self) -> None:
        self._eager.forget()
        self.eager_shared.forget()

    def components(self) -> List[Tensor]:
        """The components in their order, as the layer holds them."""
        buffers = self._buffers
        rest = [buffers[name] for name in self._names[1:]]
        return [self._parameters["values"], *rest]  # type: ignore[list-item]

    @property
    def spec(self) -> str:
        """What the operators are told of the layer: the text of a `LinearSpec`."""
        return with_dense_from(self.kernel_spec, self._dense_from)

    @property
    def kernel_spec(self) -> str:
        """The text of the `LinearSpec` that kernels are compiled for: `spec` without
        `dense_from`."""
        return self._specs[self.values.dtype]

    @property
    def dense_from(self) -> Optional[int]:
        """From how many tokens on, rows of x, the layer multiplies by a dense copy of
        its weight on a GPU; None: never. `use_dense_` finds it for whole models.

        The copy has N x K elements of the weight's type, and is made by the first call
        with so many tokens. It follows the weight, and is no part of the layer: a
        `state_dict` does not have it. Layers that are one operator use copies together,
        from the largest number of theirs on. Where gradients, the CPU, exports or types
        of 8 bits are concerned, nothing changes. None gives back the copy, if the layer
        is in an operator by the next call of that: graphs that were captured with it
        must be captured again.

        Setting it raises EncodingError unless it is an int from 1 on or None.
        """
        return self._dense_from

    @dense_from.setter
    def dense_from(self, tokens: Optional[int]) -> None:
        check_dense_from(tokens)
        self.is_dense_from_timed = False
        if tokens == self._dense_from:
            return
        self._dense_from = tokens
        settings_changed()
        self._forget()
        if tokens is None and "values" in self._parameters:
            from .kernels import drop_dense

            drop_dense(self.components(), LinearSpec.parse(self.kernel_spec))

    def forward(self, x: Tensor) -> Tensor:
        found = self._eager(x, (self,), self._find_eager)
        if found is not None:
            return found[0]
        return torch.ops.nm_sparse.linear(x, self.operands(), self.bias, self.spec)

    def _find_eager(self) -> Any:
        from .kernels import find_eager

        return find_eager(self)

    def extra_repr(self) -> str:
        text = str(self.encoding).replace(", dim = 1", "")
        parts = f"in_features={self.in_features}, out_features={self.out_features}"
        parts += f", encoding='{text}', bias={self.bias is not None}"
        if self.activation != "none":
            parts += f", activation={self.activation}"
        if self.storage != "canonical":
            parts += f", storage={self.storage}"
        if self._dense_from is not None:
            parts += f", dense_from={self._dense_from}"
        return parts
