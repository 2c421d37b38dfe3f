# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear layer whose weight is packed: `NMLinear`, in the place of `nn.Linear`."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Union

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError
from ..weight import weight_copies  # noqa: F401  fills the table of operators
from ..weight.masks import Score, prune_weight
from ..weight.shared_spec import with_dense_from
from ..weight.spec import NARROW, LinearSpec, check_dense_from, spec_texts
from ..weight.stored_forms import STORED
from ..weight.token_counts import for_rows
from ..weight.weight import PackedWeight, components_of
from . import kernels
from .convertible import conv1d_class, make_dense, matrix_of
from .dense_copies import drop_dense
from .eager import EagerCall, settings_changed
from .linear_state import DecodeForm, PackedState
from .scaled_linear import SAME, QuantizedInput, check_untrained
from .sharding import is_sharded, local_weight, sharded_linear

ACTIVATION_MODULES = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
}
_COMPONENTS = ("values", "index", "inner_index", "perm", "bits", "scale")


class NMLinear(QuantizedInput, DecodeForm, PackedState, nn.Linear):
    """y = activation(x W^T + b) with a packed weight W of `encoding`.

    in_features, out_features:  K and N.
    encoding:    an Encoding or its text, such as "8:32, block = [1, 128]"; block is
                 [along the inputs, along the outputs].
    bias:        whether there is one.
    activation:  "none", or "relu", "gelu", "gelu_tanh", "silu", computed by the same
                 kernel.
    dtype:       of the weight, the input and the result.
    elements:    "e4m3" or "int8": the weight has elements of 8 bits, each output with a
                 scale, and stands for their products; None: it has those of `dtype`.
    activations: "same", or as `elements`: the input is rounded to them, too.

    A new layer has a weight of zeros that keeps the first blocks of every window: it is
    for `load_state_dict`. `from_dense` makes one of a dense layer.

    The parameter `weight` is a `PackedWeight`: a tensor [N, K], which optimizers train
    as any other, and which never leaves its pattern. Its components are attributes,
    `values`, `index`, ..., and entries of a `state_dict`. Change them under
    `torch.no_grad()`. What changes them without torch's counting it, such as `.data` or
    replays of a CUDA graph, hides that from kernels that read another form of the
    weight: then call `torch.autograd.graph.increment_version(layer.values)`. Weights of
    8 bits are not trained. Forward-mode derivatives are not supported. `storage` is the
    form of the weight: "canonical", until `store_` changes it. `dense_from` says for
    how many tokens a dense copy is used on a GPU, and `decode_to` for how many a second
    form of the weight: none, until they are set. Input [..., K] of any batch shape,
    output [..., N].

    Raises EncodingError when the encoding is no encoding of a linear layer.
    """

    bias: Optional[nn.Parameter]  # type: ignore[assignment]
    weight: PackedWeight  # type: ignore[assignment]
    _dense_from: Optional[int] = None
    # `Conv1D` of transformers, if the layer was made of one.
    dense_class: Optional[type] = None
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
        elements: Optional[str] = None,
        activations: str = SAME,
    ) -> None:
        nn.Module.__init__(self)
        dtype = dtype or torch.get_default_dtype()
        shape = (out_features, in_features)
        weight = PackedWeight.zeros(shape, encoding, dtype, device, elements)
        wide = torch.get_default_dtype() if dtype in NARROW else dtype
        zeros = torch.zeros(out_features, dtype=wide, device=device) if bias else None
        self._set(weight, zeros, activation, activations)

    def _set(
        self,
        weight: PackedWeight,
        bias: Optional[Tensor],
        activation: str,
        activations: str = SAME,
    ) -> None:
        self.out_features, self.in_features = weight.shape
        self.encoding, self.activation = weight.encoding, activation
        self._eager = EagerCall()
        self.eager_shared = EagerCall()  # of layers that begin with this one
        self._prepare_elements()
        is_trained = weight.storage == "canonical" and weight.dtype not in NARROW
        self.hold(weight, is_trained and not weight.has_scale)
        self.register_parameter(
            "bias", None if bias is None else nn.Parameter(bias.detach())
        )
        self.activations = activations

    def hold(self, weight: PackedWeight, is_trained: bool) -> None:
        """Makes this the weight."""
        self._forget()
        shape = (self.out_features, self.in_features)
        own = self.encoding, shape, self.activation, weight.storage
        texts = spec_texts(*own, weight.element_type)
        self._specs, self.storage = texts, weight.storage
        # Tensors that were made in inference mode could not be trained outside of it.
        with torch.inference_mode(False):
            held = nn.Parameter(weight.detach(), requires_grad=is_trained)
        self.register_parameter("weight", held)

    def reset_parameters(self) -> None:
        """Does nothing: a packed weight has no distribution that it begins with."""

    @classmethod
    def from_packed(
        cls,
        weight: PackedWeight,
        bias: Optional[Tensor] = None,
        activation: str = "none",
        activations: str = SAME,
    ) -> "NMLinear":
        """A layer with these tensors, which are not copied."""
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer._set(weight, bias, activation, activations)
        return layer

    @classmethod
    def from_dense(
        cls,
        linear: nn.Module,
        encoding: Union[Encoding, str],
        score: Score = "magnitude",
        prune: bool = True,
        activation: str = "none",
        perm: Optional[Tensor] = None,
        elements: Optional[str] = None,
        scales: str = "output",
        activations: str = SAME,
        scale: Optional[Tensor] = None,
    ) -> "NMLinear":
        """The layer that keeps of `linear` what `encoding` allows.

        linear:      an `nn.Linear`, or a `Conv1D` of transformers.
        score:       what is kept: "magnitude", non-negative importances [N, K] of the
                     elements, or a function of the weight that returns them.
        prune:       False where the weight has the pattern and must not be changed.
        activation:  what follows the layer, and is computed by the same kernel.
        perm:        [N], the order of the outputs of a shuffled encoding; found by
                     default.
        elements, activations:  as for the class: what is kept is rounded to elements.
        scales, scale:  of these, as for `PackedWeight.quantize`.

        The bias is copied. Raises EncodingError when the encoding, scores or perm do
        not fit, and, without `prune`, when the weight breaks the pattern.
        """
        weight = matrix_of(linear)
        if prune:
            weight, perm = prune_weight(weight, encoding, score, perm)
        packed = PackedWeight.from_dense(weight, encoding, perm)
        bias = None if linear.bias is None else linear.bias.detach().clone()
        if elements is not None:
            packed = packed.quantize(elements, scales, scale)
        layer = cls.from_packed(packed, bias, activation, activations)
        layer.dense_class = conv1d_class(linear)
        if not linear.weight.requires_grad:
            layer.weight.requires_grad_(False)
        if linear.bias is not None and layer.bias is not None:
            layer.bias.requires_grad_(linear.bias.requires_grad)
        return layer.train(linear.training)

    def to_dense(self) -> nn.Module:
        """A dense layer with the same weight and bias, and zeros where nothing is kept;
        followed by the activation in an `nn.Sequential` if there is one.

        It is an `nn.Linear`, or the `Conv1D` of transformers that the layer was made
        of: whoever loads its `state_dict` expects its weight as [K, N].
        """
        weight, own = self.weight.to_dense().detach(), self.bias
        bias = None if own is None else own.detach().clone()
        dense = make_dense(self.dense_class, weight, bias)
        dense.weight.requires_grad_(self.weight.requires_grad)
        if own is not None:
            dense.bias.requires_grad_(own.requires_grad)
        if self.activation != "none":
            dense = nn.Sequential(dense, ACTIVATION_MODULES[self.activation]())
        return dense.train(self.training)

    def store_(self, storage: str) -> "NMLinear":
        """Stores the weight in another form, in place, and in no other.

        storage:  "canonical": `values` and `index`, which can be trained, and of which
                  kernels make what they read, beside it; or "bitmap" or "k_major",
                  which kernels read as it is (section 7 of docs/Encoding.md), for
                  inference.

        Bitmaps have the component `bits` in the place of the last index, and `values`
        in another order; "k_major" has `values` transposed. The weight stops requiring
        gradients, and back in the canonical form it does so after `requires_grad_()`.
        Going back gives the same bits. A `state_dict` has the canonical form, a copy;
        `load_state_dict` takes it.
        Where `to` gives the elements a type of another size, bitmaps are made anew, and
        a type of 8 bytes, which has none, leaves the canonical form.

        Returns the layer. Raises EncodingError when its weight has no such form:
        bitmaps need elements of at most 4 bytes and, of two levels, outer panels of a
        multiple of 32 outputs; "k_major" needs one level with order = identity.
        """
        shape = (self.out_features, self.in_features)
        spec = self.linear_spec
        own = dict(storage=storage, elements=spec.elements)
        LinearSpec(self.encoding, shape, spec.dtype, **own)  # checks it
        if storage != self.storage:
            self._change_storage(storage)
        STORED.drop_expired()  # whose memory the old weight has given back
        return self

    def _change_storage(self, storage: str) -> None:
        weight = self._packed("stored in another form")
        is_trained = storage == "canonical" and weight.requires_grad
        # Tensors made in inference mode could not be loaded outside of it.
        with torch.inference_mode(False), torch.no_grad():
            self.hold(weight.detach().stored(storage), is_trained)

    def _packed(self, purpose: str) -> PackedWeight:
        """The weight, if it is the layer's own and on one device."""
        weight = self._parameters.get("weight")
        if weight is None:
            raise EncodingError(
                "weight is no parameter: remove the parametrization or the hook that "
                f"computes it, such as one of torch.nn.utils, before it is {purpose}"
            )
        if not isinstance(weight, PackedWeight):
            raise EncodingError(
                f"weight is a {type(weight).__name__}: legal is a PackedWeight; one "
                f"that is sharded cannot be {purpose}"
            )
        return weight

    def __getattr__(self, name: str) -> Any:
        if name in _COMPONENTS and "weight" in self.__dict__.get("_parameters", ()):
            weight = local_weight(self._parameters["weight"])
            if name in weight.components:
                if torch.compiler.is_compiling():  # graphs have no other components
                    parts = torch.ops.nm_sparse.components(weight)
                    return parts[list(weight.components).index(name)]
                return weight.components[name]
        return super().__getattr__(name)

    def operands(self) -> List[Tensor]:
        """The components as the operator takes them, in the form `storage`. Where no
        gradients are recorded they ask for none, which tells kernels that they are not
        trained here."""
        weight = self.weight
        if type(weight) is not PackedWeight:
            raise EncodingError(
                f"weight is a {type(weight).__name__}: legal is a PackedWeight; remove "
                "the parametrization or the hook that computes it, and take gradients "
                "by torch.autograd, not by torch.func"
            )
        check_untrained(weight)
        return components_of(weight)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self._forget()
        with self.keeps_input_scale():
            super()._apply(fn, recurse)
        self._note_storage()
        return self

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._forget()
        super()._load_from_state_dict(*args, **kwargs)
        self._note_storage()

    def _note_storage(self) -> None:
        """The form that the weight has now: a type of 8 bytes has no bitmaps."""
        weight = local_weight(self._parameters.get("weight"))
        if isinstance(weight, PackedWeight) and weight.storage != self.storage:
            shape = (self.out_features, self.in_features)
            self.storage = weight.storage
            own = self.encoding, shape, self.activation, weight.storage
            self._specs = spec_texts(*own, weight.element_type)

    def _forget(self) -> None:
        self._eager.forget()
        self.eager_shared.forget()
        super()._forget()

    def components(self) -> List[Tensor]:
        """The components in their order, as this device holds them."""
        return list(local_weight(self.weight).components.values())

    @property
    def spec(self) -> str:
        """What the operators are told of the layer: the text of a `LinearSpec`."""
        return with_dense_from(self.kernel_spec, self._dense_from)

    @property
    def kernel_spec(self) -> str:
        """The text of the `LinearSpec` that kernels are compiled for: `spec` without
        `dense_from`."""
        weight = self.weight
        if self._is_part(weight):
            own = self.encoding, tuple(weight.matrix), self.activation, weight.storage
            return spec_texts(*own, weight.element_type)[weight.dtype]
        return self._specs[weight.dtype]

    def _is_part(self, weight: Tensor) -> bool:
        """Whether it is what this device has of a sharded weight, which some put in its
        place for a call."""
        size = (self.out_features, self.in_features)
        return type(weight) is PackedWeight and tuple(weight.matrix) != size

    @property
    def linear_spec(self) -> LinearSpec:
        """The `LinearSpec` that kernels are compiled for."""
        return LinearSpec.parse(self.kernel_spec)

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
        if tokens is None and type(self._parameters.get("weight")) is PackedWeight:
            drop_dense(self.components(), self.linear_spec)

    def forward(self, x: Tensor) -> Tensor:
        if self._activations != SAME:
            return self.forward_elements(x)
        found = self._eager(x, (self,), self._find_eager)
        if found is not None:
            return found[0]
        if is_sharded(self.weight):
            return sharded_linear(x, self.weight, self.bias, self.activation)
        spec = for_rows(self.call_spec, x)
        return torch.ops.nm_sparse.linear(x, self.operands(), self.bias, spec)

    def _find_eager(self) -> Any:
        return kernels.find_eager(self)

    def extra_repr(self) -> str:
        text = str(self.encoding).replace(", dim = 1", "")
        parts = f"in_features={self.in_features}, out_features={self.out_features}"
        parts += f", encoding='{text}', bias={self.bias is not None}"
        if self.activation != "none":
            parts += f", activation={self.activation}"
        parts += self._describe_elements()
        if self.storage != "canonical":
            parts += f", storage={self.storage}"
        if self._decode_to is not None:
            parts += f", decode_to={self._decode_to}"
        if self._dense_from is not None:
            parts += f", dense_from={self._dense_from}"
        return parts
