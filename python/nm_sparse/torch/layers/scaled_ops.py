# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of layers whose x and weights are elements of 8 bits with scales.

    nm_sparse::scaled_linear(Tensor x, Tensor x_scale, Tensor[] weight, Tensor? bias,
                             str spec) -> Tensor
        activation((x W^T) * x_scale * scale + bias), in the type `dtype` of the spec;
        W are the elements of the weight, and `scale` is its last component
    nm_sparse::scaled_linear_shared(Tensor x, Tensor x_scale, Tensor[] weights,
                                    int[] counts, Tensor?[] biases, str spec)
        -> Tensor[]
        that of several layers; `counts` and `spec` are as for `linear_shared`
    nm_sparse::scaled_gated_mlp(Tensor x, Tensor x_scale, Tensor[] gate, Tensor[] up,
                                str spec) -> Tensor
        activation(gate) * up of two weights of one spec

x_scale is f32, [..., 1] for x [..., K], or [] for all tokens, as `quantize_tokens`
returns it. x may have any strides: where it is stored feature-major, programs that read
it so are given it as it is, and others a copy. On CUDA `scaled_kernels.py` runs
compiled kernels, which apply the scales to their sums. Elsewhere the elements are
multiplied exactly: that is the reference. These operators have no gradients;
`scaled_training.py` has one that has.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError
from ..weight.pack import inverse, perm_of, unpack_rows
from ..weight.shared_spec import shared_text
from ..weight.spec import LinearSpec
from ..weight.storage import from_storage
from ..weight.weight import LIBRARY
from .mlp_ops import gated_specs
from .ops import (
    activate,
    as_rows,
    cast_weight,
    check_components,
    check_others,
    is_cast,
)
from .shared_ops import Layer, split_layers

_TAGS = (torch.Tag.pt2_compliant_tag,)
LIBRARY.define(
    "scaled_linear(Tensor x, Tensor x_scale, Tensor[] weight, Tensor? bias, str spec) "
    "-> Tensor",
    tags=_TAGS,
)
LIBRARY.define(
    "scaled_linear_shared(Tensor x, Tensor x_scale, Tensor[] weights, int[] counts, "
    "Tensor?[] biases, str spec) -> Tensor[]",
    tags=_TAGS,
)
LIBRARY.define(
    "scaled_gated_mlp(Tensor x, Tensor x_scale, Tensor[] gate, Tensor[] up, str spec) "
    "-> Tensor",
    tags=_TAGS,
)


def check_scaled_operands(x: Tensor, x_scale: Tensor, layers: Sequence[Layer]) -> None:
    """Raises EncodingError unless shapes, types and devices fit the specs."""
    for weight, bias, s in layers:
        if s.elements is None:
            raise EncodingError(
                "spec has elements None: legal for layers of x with scales is f8E4M3FN "
                "or i8; others are nm_sparse::linear"
            )
        if x.dtype != s.values_dtype:
            raise EncodingError(
                f"x is {x.dtype} and the elements of the weight {s.values_dtype}: "
                "legal is the same type, which quantize_tokens makes"
            )
        check_components(x, weight, s)
        check_others(x, weight, bias, s, s.torch_dtype)
    if x_scale.dtype != torch.float32 or x_scale.device != x.device:
        raise EncodingError(
            f"x_scale is {x_scale.dtype} on {x_scale.device}: legal is torch.float32 "
            f"on {x.device}"
        )
    if x_scale.ndim > 0 and x_scale.shape != (*x.shape[:-1], 1):
        raise EncodingError(
            f"x_scale is {list(x_scale.shape)}: legal is [] for all tokens, or "
            f"{[*x.shape[:-1], 1]} for those of x {list(x.shape)}"
        )


def wide_type(x: Tensor) -> torch.dtype:
    """In which sums of products of elements are exact, or as good as those of tensor
    cores."""
    return torch.float64 if x.dtype == torch.int8 else torch.float32


def finish(
    sums: Tensor,
    x_scale: Tensor,
    scale: Tensor,
    bias: Optional[Tensor],
    s: LinearSpec,
) -> Tensor:
    """activation(sums * x_scale * scale + bias) in the type of the spec, of sums
    [tokens, N] without scales."""
    dtype = s.torch_dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    y = sums.to(wide) * x_scale.reshape(-1, 1) * scale
    if bias is not None:
        y = y + bias.to(wide)
    return activate(y, s.activation).to(dtype)


def unpacked_scaled(
    x: Tensor,
    x_scale: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    s: LinearSpec,
) -> Tensor:
    """The reference: [..., N] by a dense product with the unpacked elements."""
    wide = wide_type(x)
    *parts, scale = from_storage(weight, s)
    rows = unpack_rows(parts, s.encoding, s.shape).to(wide)
    sums = as_rows(x).to(wide) @ rows
    if s.encoding.is_shuffled:
        sums = sums.index_select(1, inverse(perm_of(parts, s.encoding)))
    y = finish(sums, x_scale, scale, bias, s)
    return y.reshape(x.shape[:-1] + (s.shape[0],))


def _result(x: Tensor, s: LinearSpec) -> Tensor:
    return x.new_empty(x.shape[:-1] + (s.shape[0],), dtype=s.torch_dtype)


def one_layer(
    x: Tensor,
    x_scale: Tensor,
    weight: List[Tensor],
    bias: Optional[Tensor],
    spec: str,
) -> Layer:
    """The operands of `scaled_linear`, which are checked."""
    layer = weight, bias, LinearSpec.parse(spec)
    check_scaled_operands(x, x_scale, [layer])
    return layer


def several_layers(x: Tensor, x_scale: Tensor, *operands: Any) -> List[Layer]:
    """The operands of `scaled_linear_shared`, layer by layer, which are checked."""
    layers = split_layers(*operands)
    check_scaled_operands(x, x_scale, layers)
    return layers


def gated_layers(
    x: Tensor, x_scale: Tensor, gate: List[Tensor], up: List[Tensor], spec: str
) -> Tuple[Layer, Layer]:
    """The operands of `scaled_gated_mlp`, which are checked."""
    first, second = gated_specs(spec)
    layers = (gate, None, first), (up, None, second)
    check_scaled_operands(x, x_scale, layers)
    return layers


def _linear_reference(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    return unpacked_scaled(x, x_scale, *one_layer(x, x_scale, *operands))


def _linear_fake(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    return _result(x, one_layer(x, x_scale, *operands)[2])


def _shared_reference(x: Tensor, x_scale: Tensor, *operands: Any) -> List[Tensor]:
    layers = several_layers(x, x_scale, *operands)
    return [unpacked_scaled(x, x_scale, *layer) for layer in layers]


def _shared_fake(x: Tensor, x_scale: Tensor, *operands: Any) -> List[Tensor]:
    return [_result(x, s) for _, _, s in several_layers(x, x_scale, *operands)]


def _gated_reference(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    gate, up = gated_layers(x, x_scale, *operands)
    return unpacked_scaled(x, x_scale, *gate) * unpacked_scaled(x, x_scale, *up)


def _gated_fake(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    return _result(x, gated_layers(x, x_scale, *operands)[0][2])


def _vmap(info: Any, in_dims: Tuple[Any, ...], *operands: Any) -> Any:
    """Of x and its scales as one call, since these may have any batch shape."""
    (x_dim, scale_dim, *others), (x, x_scale, *rest) = in_dims, operands
    if any(dim is not None for dim in torch.utils._pytree.tree_leaves(others)):
        raise EncodingError(
            "weight or bias has a dimension of vmap: legal is one of x alone; call the "
            "layers one after the other"
        )
    count = info.batch_size
    x = x.expand(count, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
    if scale_dim is not None:
        x_scale = x_scale.movedim(scale_dim, 0)
        if x_scale.ndim == 1:  # of all tokens of each
            x_scale = x_scale.reshape(count, *[1] * (x.ndim - 1))
    if x_scale.ndim > 0:
        x_scale = x_scale.expand(*x.shape[:-1], 1)
    return torch.ops.nm_sparse.scaled_linear(x, x_scale, *rest), 0


def refuses_gradients(operator: Any) -> Callable[..., Any]:
    """Refuses to lose gradients without a word."""

    def run(*operands: Any) -> Any:
        tensors = [one for one in operands if isinstance(one, Tensor)]
        for one in operands:
            if isinstance(one, (list, tuple)):
                tensors += [part for part in one if isinstance(part, Tensor)]
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            raise EncodingError(
                f"{operator} is given a tensor that requires gradients, and has none: "
                "call the layer, or detach() the tensor"
            )
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*operands)

    return run


def _cast_bias(bias: Optional[Tensor], dtype: torch.dtype) -> Optional[Tensor]:
    return bias.to(dtype) if is_cast(bias) else bias  # type: ignore[union-attr]


def cast_linear(dtype: torch.dtype, x: Any, x_scale: Any, *operands: Any) -> Any:
    weight, bias, spec = operands
    weight, s = cast_weight(weight, LinearSpec.parse(spec), dtype)
    return x, x_scale, weight, _cast_bias(bias, dtype), s.text


def _cast_shared(dtype: torch.dtype, x: Any, x_scale: Any, *operands: Any) -> Any:
    weights, counts, _, _ = operands
    layers = split_layers(*operands)
    specs = [cast_weight(weight, s, dtype)[1] for weight, _, s in layers]
    biases = [_cast_bias(bias, dtype) for _, bias, _ in layers]
    return x, x_scale, weights, counts, biases, shared_text(specs)


def _cast_gated(dtype: torch.dtype, x: Any, x_scale: Any, *operands: Any) -> Any:
    gate, up, spec = operands
    _, s = cast_weight(gate, LinearSpec.parse(spec), dtype)
    return x, x_scale, gate, up, s.text


def register_autocast(name: str, device: str, cast: Callable[..., Any]) -> None:
    """Registers that results and biases have the type of `torch.autocast`; elements and
    scales stay."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")
    operator = getattr(torch.ops.nm_sparse, name).default

    def run(*operands: Any) -> Any:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return operator(*cast(dtype, *operands))

    LIBRARY.impl(name, run, f"Autocast{device}")


torch.library.register_vmap("nm_sparse::scaled_linear", _vmap, lib=LIBRARY)
for _name, _reference, _fake, _cast in (
    ("scaled_linear", _linear_reference, _linear_fake, cast_linear),
    ("scaled_linear_shared", _shared_reference, _shared_fake, _cast_shared),
    ("scaled_gated_mlp", _gated_reference, _gated_fake, _cast_gated),
):
    LIBRARY.impl(_name, _reference, "CompositeExplicitAutograd")
    _operator = getattr(torch.ops.nm_sparse, _name).default
    LIBRARY.impl(_name, refuses_gradients(_operator), "Autograd")
    torch.library.register_fake(f"nm_sparse::{_name}", _fake, lib=LIBRARY)
    for _device in ("CPU", "CUDA"):
        register_autocast(_name, _device, _cast)
