# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`PackedWeight`: the weight of a linear layer, packed, as a tensor [N, K].

It is a traceable wrapper subclass: the components are plain tensors, and
`weight_ops.py` has the table of operators. Graphs that torch records have the
components alone.

    nm_sparse::components(Tensor weight) -> Tensor[]

gives them to the operators of layers, with a gradient that is packed as the weight is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError, Level, Packed
from .fsdp import ShardedGather
from .levels import bits_of
from .pack import check_contents, pack_weight, unpack_weight
from .scaled_weight import (
    ScaledValues,
    check_scaled,
    rebuild_weight,
    scaled_zeros,
)
from .scales import scale_outputs
from .spec import (
    SCALE,
    LinearSpec,
    dtype_name,
    elements_of,
    linear_encoding,
    spec_texts,
)
from .storage import check_padding, from_storage, to_storage
from .weight_arrays import to_arrays, to_tensors

# Functions that compute operators of weights; None has that of all others. Each takes
# the operator, its arguments and its keyword arguments. `weight_ops.py` fills it.
HANDLERS: Dict[Any, Callable[[Any, Any, Any], Any]] = {}

LIBRARY = torch.library.Library("nm_sparse", "FRAGMENT")
LIBRARY.define(
    "components(Tensor weight) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,)
)


class PackedWeight(ShardedGather, ScaledValues, Tensor):
    """The weight [N, K] of a linear layer, N outputs by K inputs, in packed form.

    components:  the tensors by name, as docs/Encoding.md defines them. Positions are
                 uint8, or int16 and int32 whose bits are read as unsigned; `perm` is
                 int32. Each is an attribute, too.
    encoding:    with dim = 1.
    shape:       [N, K].
    storage:     the form of the components: "canonical", of section 2 of
                 docs/Encoding.md; for inference "bitmap" or "k_major", of section 7.
    has_dense_gradient:  whether its gradient is dense, for FSDP2.
    is_flat:     whether the tensor has one dimension, as `view(-1)` makes it; `matrix`
                 is [N, K] either way.
    dtype:       that of the elements. Where there is a component `scale`, f32 [N], the
                 elements have 8 bits, and dtype is that of their products with it, for
                 which the weight stands.

    It stands for the dense weight, with zeros where nothing is kept. Operators that
    optimizers, averages and checkpoints are made of act on the elements that are kept,
    in place too: what is added to others is dropped, so that the pattern stays.
    `torch.nn.functional.linear` multiplies by kernels. Others that only read compute
    with a dense copy; those that would write past the pattern raise an error. A weight
    with a scale is not trained: it can be copied, moved and read.
    """

    encoding: Encoding
    storage: str
    values: Tensor  # type: ignore[assignment]
    has_dense_gradient: bool
    matrix: torch.Size
    is_flat: bool
    # That of the products with scales; None without these.
    scaled_dtype: Optional[torch.dtype]
    # True where its positions are those of another weight, as of its gradient.
    shares_positions: bool = False

    @staticmethod
    def __new__(
        cls: Any,
        components: Mapping[str, Tensor],
        encoding: Encoding,
        shape: Sequence[int],
        storage: str = "canonical",
        has_dense_gradient: bool = False,
        is_flat: bool = False,
        dtype: Optional[torch.dtype] = None,
    ) -> "PackedWeight":
        values, (n, k) = components["values"], shape
        size = torch.Size((n * k,) if is_flat else (n, k))
        own = dtype if SCALE in components else None
        self = Tensor._make_wrapper_subclass(
            cls, size, dtype=own or values.dtype, device=values.device
        )
        self.scaled_dtype = own
        self.encoding, self.storage = encoding, storage
        self.matrix, self.is_flat = torch.Size((n, k)), is_flat
        self.has_dense_gradient = has_dense_gradient
        self._names = tuple(components)
        for name, part in components.items():
            setattr(self, name, part.detach() if part.requires_grad else part)
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    @staticmethod
    def from_components(
        components: Mapping[str, Tensor],
        encoding: Union[Encoding, str],
        shape: Sequence[int],
        dtype: Optional[torch.dtype] = None,
    ) -> "PackedWeight":
        """Puts canonical components together, without a copy. See `validate` for their
        contents.

        dtype:  that of the products, where there is a scale.

        Raises EncodingError when a name, a shape or a type is not that of a weight
        [N, K] of `shape`.
        """
        e, size = linear_encoding(encoding), torch.Size(shape)
        parts, scaled = check_scaled(components, e, tuple(size), dtype)
        return PackedWeight(parts, e, size, dtype=scaled)

    @staticmethod
    def from_dense(
        weight: Tensor,
        encoding: Union[Encoding, str],
        perm: Optional[Tensor] = None,
    ) -> "PackedWeight":
        """Packs a dense weight [N, K] that keeps to `encoding`, on its device.

        perm:  [N], the order of the outputs of a shuffled weight; by default one in
               which outputs of the same support are neighbours.

        Raises EncodingError when a window of a panel has more than n nonzero blocks,
        and when rank, type or perm do not fit.
        """
        e = linear_encoding(encoding)
        return PackedWeight(pack_weight(weight, e, perm), e, weight.shape)

    @staticmethod
    def zeros(
        shape: Sequence[int],
        encoding: Union[Encoding, str],
        dtype: Optional[torch.dtype] = None,
        device: Any = None,
        elements: Optional[str] = None,
    ) -> "PackedWeight":
        """A weight [N, K] of zeros, which keeps the first blocks of every window.

        elements:  "e4m3" or "int8", with scales of 1; None: of `dtype`, without.
        """
        e, kind = linear_encoding(encoding), elements_of(elements, "elements")
        dtype = dtype or torch.get_default_dtype()
        parts, scaled = scaled_zeros(e, shape, kind, dtype, device)
        return PackedWeight(parts, e, shape, dtype=scaled)

    @staticmethod
    def from_packed(packed: Packed) -> "PackedWeight":
        """The same components as tensors where they are, which share their memory.

        Raises EncodingError when it is not the weight of a linear layer.
        """
        parts, shape = to_tensors(packed)
        return PackedWeight.from_components(parts, packed.encoding, shape)

    @property
    def parts(self) -> Tuple[Tensor, ...]:
        """The components in their order, without their names."""
        own = self.__dict__
        return tuple([own[name] for name in self._names])

    @property
    def components(self) -> Dict[str, Tensor]:
        """The tensors by name, in their order; not copies."""
        return {name: getattr(self, name) for name in self._names}

    @property
    def spec(self) -> LinearSpec:
        """What operators are told of the weight."""
        n, k = self.matrix
        own = self.encoding, (n, k), "none", self.storage, self.element_type
        return LinearSpec.parse(spec_texts(*own)[self.dtype])

    def canonical(self) -> "PackedWeight":
        """The weight in canonical form: itself, or a copy of one in another."""
        if self.storage == "canonical":
            return self
        spec = self.spec
        parts = from_storage(self.parts, spec)
        named = dict(zip(spec.canonical.components, parts))
        return PackedWeight(named, self.encoding, self.matrix, dtype=self.scaled_dtype)

    def stored(self, storage: str) -> "PackedWeight":
        """The weight in another form; what both have is not copied.

        Raises EncodingError when weights of its encoding and type have no such form.
        """
        if storage == self.storage:
            return self
        spec = self.canonical().spec
        parts = to_storage(self.canonical().parts, spec, storage)
        named = dict(zip(replace(spec, storage=storage).components, parts))
        own = self.encoding, self.matrix, storage
        return PackedWeight(named, *own, dtype=self.scaled_dtype)

    def with_components(
        self, components: Mapping[str, Tensor], dtype: Optional[torch.dtype] = None
    ) -> "PackedWeight":
        """A weight of the same encoding, shape and form that has these components, and
        its own where none is given.

        dtype:  what it stands for, where it has a scale; that of this one by default.
        """
        parts = {**self.components, **components}
        _, (*own, scaled) = self.__tensor_flatten__()
        return PackedWeight(parts, *own, dtype or scaled)

    def flat(self) -> "PackedWeight":
        """The same memory as a tensor of one dimension."""
        own = (self.encoding, self.matrix, self.storage, self.has_dense_gradient)
        return PackedWeight(self.components, *own, True, self.scaled_dtype)

    def to_packed(self) -> Packed:
        """The canonical components as numpy arrays: bf16 and f8 as unsigned views.

        Raises EncodingError for a weight with a scale, for which there is no place.
        """
        if self.has_scale:
            raise EncodingError(
                "the weight has a scale, which Packed has no place for: call "
                "dequantize() first, or take its components"
            )
        arrays = to_arrays(self.canonical().components)
        return Packed(arrays, self.encoding, tuple(self.matrix), dtype_name(self.dtype))

    def to_dense(self, dtype: Optional[torch.dtype] = None) -> Tensor:  # type: ignore[override]
        """The dense weight [N, K], a copy; differentiable in canonical form.

        dtype:  of the copy; that of the weight by default.
        """
        is_trained = self.requires_grad and self.storage == "canonical"
        if torch.is_grad_enabled() and is_trained:
            parts = components_of(self)
            dense = unpack_weight(parts, self.encoding, tuple(self.matrix))
        else:
            dense = densify(self)
        return dense if dtype is None else dense.to(dtype)

    def validate(self) -> None:
        """Checks what the components hold.

        Raises EncodingError when a position is out of its window or out of order,
        values past the end of the weight are not +0, perm is no permutation, or a scale
        is not finite and above 0.
        """
        check_padding(self.values, self.spec)
        own = self.canonical()
        check_contents(own.components, own.encoding, tuple(own.matrix))
        own.check_scale()

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Bytes of all components."""
        return sum(part.nbytes for part in self.components.values())

    def share_memory_(self) -> "PackedWeight":
        """Moves the components to shared memory, for other processes."""
        for part in self.components.values():
            part.share_memory_()
        return self

    def is_shared(self) -> bool:
        return all(part.is_shared() for part in self.components.values())

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        text = str(self.encoding).replace(", dim = 1", "")
        parts = f"{list(self.shape)}, encoding='{text}', dtype={self.dtype}"
        if self.has_scale:
            parts += f", elements={self.elements}"
        if self.storage != "canonical":
            parts += f", storage={self.storage}"
        if self.device.type != "cpu":
            parts += f", device='{self.device}'"
        if self.requires_grad:
            parts += ", requires_grad=True"
        return f"PackedWeight({parts})"

    def __tensor_flatten__(self) -> Tuple[List[str], Tuple[Any, ...]]:
        own = (self.encoding, tuple(self.matrix), self.storage)
        more = self.has_dense_gradient, self.is_flat, self.scaled_dtype
        return list(self._names), (*own, *more)

    @staticmethod
    def __tensor_unflatten__(
        inner: Mapping[str, Tensor], own: Any, size: Any, stride: Any
    ) -> "PackedWeight":
        return PackedWeight(inner, *own)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is torch.nn.functional.linear:
            return _linear(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        handle = HANDLERS.get(func, HANDLERS.get(None))
        return handle(func, args, kwargs or {})  # type: ignore[misc]


def components_of(weight: PackedWeight) -> List[Tensor]:
    """The components for the operators of layers, in their order. The values have the
    gradients of the weight, where some are recorded."""
    if torch.compiler.is_compiling():  # graphs have operators, and no functions
        return torch.ops.nm_sparse.components(weight)
    if weight.requires_grad and torch.is_grad_enabled():
        return list(_Components.apply(weight))
    return list(weight.components.values())


def packed_gradient(
    own: Tuple[Any, ...],
    names: Sequence[str],
    positions: Sequence[Tensor],
    values: Optional[Tensor],
) -> Optional[Tensor]:
    """The gradient of a weight by that of its values: packed, or dense if it says so.

    own, names:  of the weight, as `__tensor_flatten__` returns them.
    positions:   its other components.
    """
    if values is None:
        return None
    parts = dict(zip(names, (values, *positions)))
    weight = PackedWeight.__tensor_unflatten__(parts, own, None, None)
    weight.shares_positions = True
    return densify(weight) if weight.has_dense_gradient else weight


class _Components(torch.autograd.Function):
    """The operator of that name, for eager calls: its results count their changes
    together with the components."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: PackedWeight) -> Tuple[Tensor, ...]:
        return tuple(part.detach() for part in weight.components.values())

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        ctx.names, ctx.own = inputs[0].__tensor_flatten__()
        ctx.save_for_backward(*output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Optional[Tensor]) -> Optional[Tensor]:
        return packed_gradient(ctx.own, ctx.names, ctx.saved_tensors, grads[0])


def densify(weight: PackedWeight) -> Tensor:
    """The dense weight [N, K], a copy of its bits: NaN keep their payload."""
    own = weight.canonical()
    parts = list(own.components.values())
    values = parts[0].detach()
    parts[0] = bits_of(values.contiguous())
    dense = unpack_weight(parts, own.encoding, tuple(own.matrix)).view(values.dtype)
    if own.has_scale:
        dense = scale_outputs(dense, parts[-1], own.dtype)
    return dense.view(-1) if weight.is_flat else dense


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    if not isinstance(weight, PackedWeight) or not isinstance(x, Tensor):
        raise TypeError("legal is a packed weight, and activations of tensors")
    if isinstance(x, PackedWeight):
        x = x.to_dense()
    parts = components_of(weight)
    return torch.ops.nm_sparse.linear(x, parts, bias, weight.spec.text)


torch.serialization.add_safe_globals([PackedWeight, Encoding, Level, rebuild_weight])
