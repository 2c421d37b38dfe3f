# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that are sharded over several devices: slices, and DTensors.

A weight is cut between panels of outputs (dimension 0) or windows of inputs
(dimension 1); each part is a packed weight of the same encoding. The components of a
sharded weight are sharded tensors themselves, along the other dimension, as they have
inputs first; checkpoints have those.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import torch
from torch import Tensor
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)

from ...encoding import EncodingError, packed_shapes
from ...encoding.slices import component_slices
from ..weight import collectives  # noqa: F401  fills the table of operators
from ..weight.spec import SCALE, LinearSpec, dtype_name
from ..weight.weight import PackedWeight, components_of
from ..weight.weight_ops import implements
from .ops import activate

aten = torch.ops.aten


def slice_weight(weight: PackedWeight, dim: int, begin: int, end: int) -> PackedWeight:
    """Outputs (`dim` 0) or inputs (`dim` 1) `begin` to `end - 1`, in the same memory.

    Raises EncodingError where that cuts a panel or a window, of outputs of a shuffled
    weight, and of a weight that is not in canonical form.
    """
    if weight.storage != "canonical":
        raise EncodingError(
            f"the weight is stored as {weight.storage!r}, which cannot be sliced: call "
            'store_("canonical") of its layer first'
        )
    slices = component_slices(weight.encoding, weight.matrix, dim, begin, end)
    slices[SCALE] = (slice(begin, end) if dim == 0 else slice(None),)
    parts = {name: x[slices[name]] for name, x in weight.components.items()}
    shape = list(weight.matrix)
    shape[dim] = end - begin
    own = dict(has_dense_gradient=weight.has_dense_gradient, dtype=weight.scaled_dtype)
    return PackedWeight(parts, weight.encoding, shape, **own)


def _bounds(weight: PackedWeight, dim: int, begin: Any, end: Any) -> Tuple[int, int]:
    size = weight.shape[dim]
    begin = 0 if begin is None else begin + size if begin < 0 else begin
    end = size if end is None else end + size if end < 0 else min(end, size)
    return min(begin, size), max(min(begin, size), end)


@implements(aten.slice.Tensor)
def _slice(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    weight, dim, begin, end, step = (*args, None, None, None, None)[:5]
    dim = (dim or 0) % 2
    if step not in (None, 1) or weight.is_flat:
        raise EncodingError(f"a slice of a packed weight has step {step}: legal is 1")
    begin, end = _bounds(weight, dim, begin, end)
    return slice_weight(weight, dim, begin, end)


@implements(aten.split.Tensor)
def _split(func: Any, args: Any, kwargs: Any) -> List[PackedWeight]:
    weight, size = args[0], args[1]
    dim = (args[2] if len(args) > 2 else kwargs.get("dim", 0)) % 2
    count = weight.shape[dim]
    return [
        slice_weight(weight, dim, begin, min(begin + size, count))
        for begin in range(0, max(count, 1), max(size, 1))
    ]


@implements(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def _view(func: Any, args: Any, kwargs: Any) -> Tensor:
    """Of its own shape or of one dimension; others are copies."""
    weight, size = args[0], list(args[1])
    if size in ([-1], [weight.numel()]):
        return weight.flat()
    if size == list(weight.matrix):
        return weight.with_components({})
    raise EncodingError(
        f"a packed weight {list(weight.matrix)} has no view {size}: legal are the same "
        "shape and one dimension; use to_dense()"
    )


@implements(aten.as_strided.default)
def _as_strided(func: Any, args: Any, kwargs: Any) -> PackedWeight:
    weight, size = args[0], list(args[1])
    stride, offset = list(args[2]), (*args, 0)[3] or kwargs.get("storage_offset", 0)
    if size == list(weight.matrix) and stride == [size[1], 1] and not offset:
        return weight.with_components({})
    raise EncodingError(
        f"a packed weight {list(weight.matrix)} has no view {size} of strides "
        f"{stride}: legal is its own; use to_dense()"
    )


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor is one of several devices."""
    return isinstance(tensor, DTensor)


def local_weight(tensor: Any) -> Any:
    """The part of a tensor that this device has: itself, if it is not sharded."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def _placements(weight: DTensor, name: str) -> List[Placement]:
    """How a component of a sharded weight is placed."""
    found: List[Placement] = []
    for one in weight.placements:
        if isinstance(one, Shard) and name == SCALE:  # which inputs share
            found.append(Replicate() if one.dim % 2 else Shard(0))
        elif isinstance(one, Shard) and name != "perm":
            found.append(Shard(1 - one.dim % 2))
        else:
            found.append(Replicate())
    return found


def _extents(weight: DTensor) -> Dict[str, Tuple[int, ...]]:
    """The shapes of the components of the whole weight."""
    n, k = weight.shape
    own = local_weight(weight)
    shapes = packed_shapes(own.encoding, (n, k))
    return {**shapes, SCALE: (n,)} if own.has_scale else shapes


def shard_components(weight: Tensor) -> Dict[str, Tensor]:
    """The canonical components of a weight; of a sharded one as sharded tensors."""
    own = local_weight(weight).detach().canonical()
    if not isinstance(weight, DTensor):
        return own.components
    return {
        name: DTensor.from_local(
            own.components[name],
            weight.device_mesh,
            _placements(weight, name),
            run_check=False,
            shape=torch.Size(size),
            stride=torch.empty(size, device="meta").stride(),
        )
        for name, size in _extents(weight).items()
    }


def sharded_like(weight: Tensor, parts: Mapping[str, Tensor]) -> Tensor:
    """A weight that is sharded as `weight` is, of components which may be whole or
    sharded otherwise; those that are missing are its own.

    Raises EncodingError when a component has another shape.
    """
    if not isinstance(weight, DTensor):
        whole = {k: x.full_tensor() if is_sharded(x) else x for k, x in parts.items()}
        assert isinstance(weight, PackedWeight)
        whole = {**weight.canonical().components, **whole}
        kind = weight.encoding, weight.shape, weight.scaled_dtype
        return PackedWeight.from_components(whole, *kind)
    mesh, own = weight.device_mesh, shard_components(weight)
    found: Dict[str, Tensor] = {}
    for name, size in _extents(weight).items():
        part, places = parts.get(name, own[name]), _placements(weight, name)
        if tuple(part.shape) != size:
            raise EncodingError(
                f"{name} is {list(part.shape)}: a weight {list(weight.shape)} needs "
                f"{list(size)}"
            )
        if isinstance(part, DTensor):
            moved = part.redistribute(mesh, places)
        else:
            part = part.to(own[name].device)
            moved = distribute_tensor(part, mesh, places, src_data_rank=None)
        found[name] = moved.to_local()
    local = local_weight(weight)
    kind = local.encoding, local.matrix, local.scaled_dtype
    packed = PackedWeight.from_components(found, *kind)
    return DTensor.from_local(
        packed,
        mesh,
        weight.placements,
        run_check=False,
        shape=weight.shape,
        stride=weight.stride(),
    )


# (x, components, bias, text of a spec) -> activation(x W^T + bias)
Product = Callable[[Tensor, List[Tensor], Optional[Tensor], str], Tensor]


def sharded_linear(
    x: Tensor,
    weight: DTensor,
    bias: Optional[Tensor],
    activation: str,
    product: Product = torch.ops.nm_sparse.linear,
) -> Tensor:
    """activation(x W^T + bias) with a weight that is sharded along outputs or inputs.

    x:        [..., K], a DTensor: replicated where outputs are sharded, and sharded
              along its last dimension where inputs are.
    bias:     [N], placed as the outputs are.
    product:  of what this device has.

    Returns a DTensor [..., N]: sharded along its last dimension, or sums that are to be
    added up.
    """
    mesh, last = weight.device_mesh, x.ndim - 1
    if not isinstance(x, DTensor):
        raise EncodingError(
            "x is a plain tensor, and the weight is sharded: legal is a DTensor; call "
            "parallelize_module, or fully_shard, on the layer"
        )
    wanted, gradients, results = [], [], []  # of x, of its gradient, of y
    for one in weight.placements:
        is_row = isinstance(one, Shard) and one.dim % 2 == 1
        is_column = isinstance(one, Shard) and not is_row
        wanted.append(Shard(last) if is_row else Replicate())
        gradients.append(Partial() if is_column else wanted[-1])
        results.append(
            Partial() if is_row else Shard(last) if is_column else Replicate()
        )
    is_sum = any(isinstance(one, Partial) for one in results)
    local = x.redistribute(mesh, wanted).to_local(grad_placements=gradients)
    own = weight.to_local()
    n, k = own.matrix
    kind = "none" if is_sum else activation
    fields = own.encoding, (n, k), dtype_name(own.dtype), kind, own.storage
    spec = LinearSpec(*fields, elements=own.element_type)
    added = None
    if bias is not None and not is_sum:
        places = [Shard(0) if isinstance(p, Shard) else Replicate() for p in results]
        added = bias.redistribute(mesh, places).to_local()
    parts = components_of(own)
    y = product(local, parts, added, spec.text)
    whole = DTensor.from_local(y, mesh, results, run_check=False)
    if not is_sum:
        return whole
    if bias is None and activation == "none":
        return whole
    whole = whole.redistribute(mesh, [Replicate()] * mesh.ndim)
    return activate(whole if bias is None else whole + bias, activation)
