# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators by which packed weights are copied, moved and made like each other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from ...encoding import EncodingError
from .pack import zero_components
from .spec import NARROW, dtype_name
from .weight import PackedWeight, densify
from .weight_ops import implements, note_change, same_pattern, values_like, with_values

aten = torch.ops.aten


@implements(aten.detach.default, aten.alias.default, aten.lift_fresh.default)
def _same(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    """With the same components, which count their changes."""
    return args[0].with_components({})


@implements(aten.clone.default)
def _clone(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    weight = args[0]
    parts = {name: part.clone() for name, part in weight.components.items()}
    return weight.with_components(parts)


@implements(aten._to_copy.default)
def _to_copy(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    weight = args[0]
    dtype = kwargs.get("dtype") or weight.dtype
    dtype_name(dtype)
    moved = {k: x for k, x in kwargs.items() if k in ("device", "non_blocking")}
    moved = {k: x for k, x in moved.items() if x is not None}
    if weight.has_scale:
        return _scaled_copy(weight, dtype, moved)
    storage = weight.storage
    if storage == "bitmap" and dtype.itemsize != weight.dtype.itemsize:
        weight = weight.canonical()
    parts = {k: aten._to_copy(x, **moved) for k, x in weight.components.items()}
    parts["values"] = parts["values"].to(dtype)
    copy = weight.with_components(parts)
    if copy.storage != storage and dtype.itemsize <= 4:
        copy = copy.stored(storage)
    return copy


def _scaled_copy(weight: PackedWeight, dtype: torch.dtype, moved: Any) -> PackedWeight:
    """Of the same elements, which stand for numbers of another type."""
    if dtype in NARROW:
        raise EncodingError(
            f"dtype is {dtype}: legal for a weight with a scale are float types of 16 "
            "bits or more; its elements are its attribute `values`"
        )
    parts = {k: aten._to_copy(x, **moved) for k, x in weight.components.items()}
    return weight.with_components(parts, dtype=dtype)


@implements(aten.zeros_like.default, aten.empty_like.default, aten.full_like.default)
def _like(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    """Of the same pattern; numbers are those of what is kept."""
    weight = args[0]
    options = {k: x for k, x in kwargs.items() if k in ("dtype", "device")}
    options = {k: x for k, x in options.items() if x is not None}
    if weight.has_scale:
        return _scaled_like(func, weight, args[1:], options)
    values = func(weight.values, *args[1:], **options)
    if values.device == weight.device:
        like = with_values(weight, values.contiguous())
        if func is aten.empty_like.default:  # all of it is to be written
            rest = {name: x.clone() for name, x in weight.components.items()}
            like = like.with_components({**rest, "values": like.values})
        like.shares_positions = func is not aten.empty_like.default
        return like
    if weight.is_meta or weight.storage != "canonical":
        # Positions that nobody has written would be out of their windows.
        n, k = weight.matrix
        parts = zero_components(weight.encoding, (n, k), values.dtype, values.device)
        return PackedWeight(parts, weight.encoding, (n, k))
    parts = {k: x.to(values.device) for k, x in weight.components.items()}
    return weight.with_components({**parts, "values": values})


def _scaled_like(func: Any, weight: PackedWeight, rest: Any, options: Any) -> Tensor:
    """Zeros with scales, as they would be loaded; other numbers make a dense tensor."""
    if func is aten.full_like.default:
        return func(densify(weight), *rest, **options)
    dtype = options.get("dtype", weight.dtype)
    device = options.get("device", weight.device)
    if device == weight.device and not weight.is_meta:
        parts = {name: part.clone() for name, part in weight.components.items()}
        parts["values"].zero_()
        return weight.with_components(parts, dtype=dtype)
    made = PackedWeight.zeros(
        weight.matrix, weight.encoding, dtype, device, weight.elements
    )
    return made.stored(weight.storage)


@implements(aten.new_zeros.default, aten.new_empty.default)
def _new(func: Any, args: Any, kwargs: Any) -> Tensor:
    weight, size = args[0], args[1]
    dtype = kwargs.get("dtype") or weight.dtype
    device = kwargs.get("device") or weight.device
    if len(size) != 2:
        return func(weight.values, size, **{**kwargs, "dtype": dtype})
    elements = weight.elements
    return PackedWeight.zeros(size, weight.encoding, dtype, device, elements)


def _is_all(kept: Any, dense: Tensor) -> bool:
    """Whether all nonzero elements of a dense tensor are among those that are kept."""
    if not isinstance(kept, Tensor) or kept.is_meta or isinstance(kept, FakeTensor):
        return True
    return bool(torch.count_nonzero(kept) == torch.count_nonzero(dense))


@implements(aten.copy_.default)
def _copy(func: Any, args: Any, kwargs: Any) -> Tensor:
    """From another weight all components; from a dense one what the pattern keeps."""
    target, source = args[0], args[1]
    if not isinstance(target, PackedWeight):
        return target.copy_(densify(source))
    if target.has_scale:
        _check_scaled_source(target, source)
    elif isinstance(source, PackedWeight):
        source = source.dequantize()
    if not isinstance(source, PackedWeight):
        kept = values_like(target, source, "copy_")
        # Gradients and states of optimizers have the pattern of their weight.
        if not target.shares_positions and not _is_all(kept, source):
            raise EncodingError(
                "copy_ from a dense tensor that has elements outside of the pattern of "
                f"the weight {list(target.matrix)}: legal are those of its pattern; "
                "pack the tensor by PackedWeight.from_dense, and copy_ from that. DDP "
                "needs the same patterns in all processes: load one checkpoint first"
            )
        target.values.copy_(kept)
    elif (target.encoding, target.matrix) == (source.encoding, source.matrix):
        source = source.stored(target.storage)
        if target.shares_positions and not same_pattern(target, source):
            for name in target._names[1:]:  # those of others stay
                setattr(target, name, getattr(target, name).clone())
            target.shares_positions = False
        for name, part in target.components.items():
            part.copy_(getattr(source, name))
    else:
        raise EncodingError(
            f"copy_ from {source.encoding} {list(source.shape)} to {target.encoding} "
            f"{list(target.matrix)}: legal are weights of one encoding and shape"
        )
    note_change(target)
    return target


def _check_scaled_source(target: PackedWeight, source: Any) -> None:
    """Raises EncodingError unless a weight with a scale can become a copy of it."""
    kind = getattr(source, "elements", None)
    if kind != target.elements:
        raise EncodingError(
            f"copy_ from a tensor of {source.dtype} to a weight with elements of "
            f"{target.elements} and a scale: legal is another such weight, which "
            "PackedWeight.quantize makes"
        )


@implements(aten.equal.default)
def _equal(func: Any, args: Any, kwargs: Any) -> bool:
    a, b = (densify(x) if isinstance(x, PackedWeight) else x for x in args)
    return torch.equal(a, b)


@implements(aten.is_pinned.default)
def _is_pinned(func: Any, args: Any, kwargs: Any) -> bool:
    return args[0].values.is_pinned()


@implements(aten._pin_memory.default)
def _pin(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    weight = args[0]
    parts = {name: part.pin_memory() for name, part in weight.components.items()}
    return weight.with_components(parts)


@implements(aten.record_stream.default)
def _record_stream(func: Any, args: Any, kwargs: Any) -> None:
    for part in args[0].components.values():
        part.record_stream(args[1])
