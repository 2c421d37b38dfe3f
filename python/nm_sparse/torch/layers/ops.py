# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator `nm_sparse::linear`: a linear layer with a packed weight.

    nm_sparse::linear(Tensor x, Tensor[] weight, Tensor? bias, str spec) -> Tensor

On CUDA `kernels.py` runs a compiled kernel. Elsewhere it unpacks the weight and
multiplies in torch, with sums in float32 for f16 and bf16: that is the reference.

The gradient of x is multiplied by the weight unpacked from the same packed copy, and
nothing dense is kept between the passes. The gradient of `values`, the first component,
is gathered at the positions that are kept, so that training never leaves the pattern;
past the end of the weight it is zero. A zero within a kept block is a part of the
pattern like any other element, and may change. Of an activation with a smooth
derivative the backward pass computes the sums before it a second time, by another call
of the operator, rather than keep them; of ReLU the result says what it needs.

A weight that is not in canonical form (`spec.storage`) is for inference: x has a
gradient, `values` has none.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...encoding import EncodingError
from ..weight.pack import gather_rows, inverse, perm_of, unpack_rows
from ..weight.scales import packed_scale
from ..weight.spec import DTYPE_NAMES, NARROW, LinearSpec
from ..weight.storage import from_storage
from ..weight.weight import LIBRARY, PackedWeight, components_of

LIBRARY.define(
    "linear(Tensor x, Tensor[] weight, Tensor? bias, str spec) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def packed_linear(
    x: Tensor,
    weight: PackedWeight,
    bias: Optional[Tensor] = None,
    activation: str = "none",
) -> Tensor:
    """activation(x W^T + bias), as `torch.nn.functional.linear` with a packed W.

    x:           [..., K], of the type of the weight; of any float type where the
                 weight has 8 bits.
    bias:        [N], of the type of x.
    activation:  one of "none", "relu", "gelu", "gelu_tanh", "silu".

    Returns [..., N] in the type of x.
    """
    n, k = weight.shape
    own = (n, k), DTYPE_NAMES[weight.dtype], activation, weight.storage
    spec = LinearSpec(weight.encoding, *own, elements=weight.element_type)
    parts = components_of(weight)
    return torch.ops.nm_sparse.linear(x, parts, bias, spec.text)


def check_operands(
    x: Tensor, weight: Sequence[Tensor], bias: Optional[Tensor], s: LinearSpec
) -> None:
    """Raises EncodingError unless shapes, types and devices fit the spec."""
    check_components(x, weight, s)
    type_of_x, type_of_weight = x.dtype, s.torch_dtype
    if type_of_x != type_of_weight and type_of_weight not in NARROW:
        raise EncodingError(
            f"x is {type_of_x} and the weight {type_of_weight}: legal is the same "
            "type; convert one with .to(), or use torch.autocast"
        )
    if not type_of_x.is_floating_point or type_of_x in NARROW:
        raise EncodingError(
            f"x is {type_of_x}: legal are float types of 16 bits or more"
        )
    check_others(x, weight, bias, s, type_of_x)


def check_components(x: Tensor, weight: Sequence[Tensor], s: LinearSpec) -> None:
    """Raises EncodingError unless the components, and the shape of x, fit the spec."""
    n, k = s.shape
    if x.ndim < 1 or x.shape[-1] != k:
        raise EncodingError(
            f"x has shape {list(x.shape)}: a weight [{n}, {k}] needs [..., {k}]"
        )
    legal = s.components
    if len(weight) != len(legal) or any(
        part.shape != size or part.dtype != dtype
        for part, (size, dtype) in zip(weight, legal.values())
    ):
        found = ", ".join(f"{list(part.shape)} of {part.dtype}" for part in weight)
        parts = (f"{name} {list(size)} of {d}" for name, (size, d) in legal.items())
        raise EncodingError(
            f"weight has components {found}: the spec says {', '.join(parts)}"
        )


def check_others(
    x: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    s: LinearSpec,
    dtype: torch.dtype,
) -> None:
    """Raises EncodingError unless the bias is of type `dtype` and fits the spec, and
    all are on one device."""
    n = s.shape[0]
    if bias is not None and (bias.shape != (n,) or bias.dtype != dtype):
        raise EncodingError(
            f"bias is {list(bias.shape)} of {bias.dtype}: legal is [{n}] of {dtype}"
        )
    device = x.device
    if any(part.device != device for part in weight):
        raise EncodingError(
            f"x is on {x.device} and the weight on {weight[0].device}: legal is one "
            "device; move the module with .to()"
        )


def accumulator(x: Tensor) -> torch.dtype:
    """The type in which a product with x is computed: on the CPU float32 or wider;
    elsewhere matrix products of f16 and bf16 add up in float32 themselves."""
    is_half = x.dtype in (torch.float16, torch.bfloat16)
    return torch.float32 if is_half and x.device.type == "cpu" else x.dtype


def as_rows(x: Tensor) -> Tensor:
    """[..., K] as [tokens, K]."""
    return x.unsqueeze(0) if x.ndim == 1 else x.flatten(0, -2)


def activate(y: Tensor, activation: str) -> Tensor:
    """The activation of that name."""
    if activation == "relu":
        return F.relu(y)
    if activation == "silu":
        return F.silu(y)
    if activation == "none":
        return y
    return F.gelu(y, approximate="tanh" if activation == "gelu_tanh" else "none")


def unpacked_rows(weight: Sequence[Tensor], s: LinearSpec, wide: torch.dtype) -> Tensor:
    """What a weight stands for, [K, N] of type `wide`, its outputs in packed order."""
    rows = unpack_rows(from_storage(weight, s), s.encoding, s.shape).to(wide)
    if s.elements is None:
        return rows
    return rows * packed_scale(weight, s).to(wide)


def unpacked_linear(
    x: Tensor, weight: Sequence[Tensor], bias: Optional[Tensor], s: LinearSpec
) -> Tensor:
    """The reference: [..., N] by a dense product with the unpacked weight."""
    wide = accumulator(x)
    y = as_rows(x).to(wide) @ unpacked_rows(weight, s, wide)
    if s.encoding.is_shuffled:
        y = y.index_select(1, inverse(perm_of(weight, s.encoding)))
    if bias is not None:
        y = y + bias.to(wide)
    y = activate(y, s.activation).to(x.dtype)
    return y.reshape(x.shape[:-1] + (s.shape[0],))


def _linear_reference(
    x: Tensor, weight: List[Tensor], bias: Optional[Tensor], spec: str
) -> Tensor:
    s = LinearSpec.parse(spec)
    check_operands(x, weight, bias, s)
    return unpacked_linear(x, weight, bias, s)


def _linear_fake(
    x: Tensor, weight: List[Tensor], bias: Optional[Tensor], spec: str
) -> Tensor:
    s = LinearSpec.parse(spec)
    check_operands(x, weight, bias, s)
    return x.new_empty(x.shape[:-1] + (s.shape[0],))


def refuse_training(weight: Sequence[Tensor], s: LinearSpec) -> None:
    if s.elements is not None and weight[0].requires_grad:
        raise EncodingError(
            f"values ask for gradients, and are {weight[0].dtype} with a scale: legal "
            "for training are floats of 16 bits or more; call requires_grad_(False) of "
            "the weight, or train it before it is quantized"
        )
    if s.storage != "canonical" and weight[0].requires_grad:
        raise EncodingError(
            f"values ask for gradients, and storage is {s.storage!r}: legal for "
            "training is 'canonical'; call store_('canonical') of the layer, or "
            "values.requires_grad_(False)"
        )


@functools.lru_cache(maxsize=4096)
def with_fields(spec: str, **fields: str) -> str:
    """The text of the spec with other fields."""
    return replace(LinearSpec.parse(spec), **fields).text


def _save_for_backward(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, spec = inputs
    refuse_training(weight, LinearSpec.parse(spec))
    activation = LinearSpec.parse(spec).activation
    has_x, has_bias, has_result = saves(activation, ctx.needs_input_grad[1])
    ctx.spec, ctx.x_shape = spec, x.shape
    ctx.x_like, ctx.bias_type = x.new_empty(0), None if bias is None else bias.dtype
    # The operands in one row: x, the bias, the result, then the components.
    ctx.save_for_backward(
        x if has_x else None,
        bias if has_bias else None,
        output if has_result else None,
        *weight,
    )


def _before_activation(
    dy: Tensor,
    saved: Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]],
    weight: List[Tensor],
    spec: str,
) -> Tensor:
    """The gradient of what the activation is applied to."""
    x, bias, y = saved
    activation = LinearSpec.parse(spec).activation
    if activation == "none":
        return dy
    if y is not None:
        return torch.ops.aten.threshold_backward(dy, y, 0)
    plain = with_fields(spec, activation="none")
    before = torch.ops.nm_sparse.linear(x, weight, bias, plain)
    return through_activation(dy, before, activation)


def through_activation(dy: Tensor, before: Tensor, activation: str) -> Tensor:
    """The gradient of what a smooth activation is applied to, `before`."""
    if activation == "silu":  # written out, so that it has a derivative itself
        gate = torch.sigmoid(before)
        return dy * (gate * (1 + before * (1 - gate)))
    kind = "tanh" if activation == "gelu_tanh" else "none"
    return torch.ops.aten.gelu_backward(dy, before, approximate=kind)


def linear_gradients(
    dy: Tensor,
    saved: Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]],
    weight: Sequence[Tensor],
    spec: str,
    needs: Tuple[bool, bool, bool],
    like: Tensor,
) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    """The gradients of x, [tokens, K], of the values, and of the bias, where they are
    needed.

    saved:   x, the bias, and the result, where `saves` says so.
    weight:  the components.
    like:    a tensor of the type and device of x.
    """
    s, wide = LinearSpec.parse(spec), accumulator(like)
    dz = as_rows(_before_activation(dy, saved, list(weight), spec)).to(wide)
    dx, dvalues = None, None
    db = dz.sum(0) if needs[2] else None
    if s.encoding.is_shuffled:
        dz = dz.index_select(1, perm_of(weight, s.encoding).to(torch.int64))
    if needs[0]:
        dx = (dz @ unpacked_rows(weight, s, wide).t()).to(dy.dtype)
    if needs[1]:
        rows = as_rows(saved[0]).to(wide).t() @ dz  # type: ignore[arg-type]
        dvalues = gather_rows(rows, weight, s.encoding).to(weight[0].dtype)
    return dx, dvalues, db


def saves(activation: str, needs_weight: bool) -> Tuple[bool, bool, bool]:
    """Whether the backward pass needs x, the bias, and the result."""
    is_recomputed = activation not in ("none", "relu")
    return is_recomputed or needs_weight, is_recomputed, activation == "relu"


def _linear_backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    tensors = ctx.saved_tensors  # once: recomputed ones are gone then
    saved, weight = tensors[:3], tensors[3:]
    needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
    needs = (needs_x, needs_weight[0], needs_bias)
    dx, dvalues, db = linear_gradients(
        dy, tuple(saved), weight, ctx.spec, needs, ctx.x_like
    )
    dx = None if dx is None else dx.reshape(ctx.x_shape)
    db = None if db is None else db.to(ctx.bias_type)
    return dx, [dvalues] + [None] * (len(weight) - 1), db, None


def is_cast(tensor: Optional[Tensor]) -> bool:
    """Whether `torch.autocast` changes its type: all floats but float64 and those of 8
    bits."""
    return (
        tensor is not None
        and tensor.dtype.is_floating_point
        and tensor.dtype not in (torch.float64, *NARROW)
    )


def cast_weight(
    weight: Sequence[Tensor], s: LinearSpec, dtype: torch.dtype
) -> Tuple[List[Tensor], LinearSpec]:
    """A weight as `torch.autocast` to `dtype` makes it, and its spec."""
    if s.elements is not None and s.torch_dtype != torch.float64:
        text = with_fields(s.text, dtype=DTYPE_NAMES[dtype])
        return list(weight), LinearSpec.parse(text)
    if not is_cast(weight[0]):
        return list(weight), s
    if torch.is_grad_enabled():
        refuse_training(weight, s)
    if s.storage == "bitmap" and dtype.itemsize != s.torch_dtype.itemsize:
        weight, s = from_storage(weight, s), replace(s, storage="canonical")
    values = weight[0].to(dtype)
    text = with_fields(s.text, dtype=DTYPE_NAMES[dtype])
    return [values, *weight[1:]], LinearSpec.parse(text)


def _linear_vmap(info: Any, in_dims: Tuple[Any, ...], *operands: Any) -> Any:
    """Of x as one call, since it may have any batch shape; of weights or biases that
    differ one by one."""
    x, weight, bias, spec = operands
    x_dim, weight_dims, bias_dim, _ = in_dims
    linear = torch.ops.nm_sparse.linear
    if x_dim is not None:
        x = x.movedim(x_dim, 0)
    parts_dims = weight_dims or [None] * len(weight)
    if bias_dim is None and all(dim is None for dim in parts_dims):
        return linear(x, weight, bias, spec), 0

    def pick(tensor: Any, dim: Optional[int], i: int) -> Any:
        return tensor if dim is None else tensor.select(dim, i)

    results = [
        linear(
            pick(x, None if x_dim is None else 0, i),
            [pick(part, dim, i) for part, dim in zip(weight, parts_dims)],
            pick(bias, bias_dim, i),
            spec,
        )
        for i in range(info.batch_size)
    ]
    return torch.stack(results), 0


def _autocast(device: str) -> None:
    """Registers that operands become those of `torch.autocast`."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def linear(
        x: Tensor, weight: List[Tensor], bias: Optional[Tensor], spec: str
    ) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weight, s = cast_weight(weight, LinearSpec.parse(spec), dtype)
            x = x.to(dtype) if is_cast(x) else x
            bias = bias.to(dtype) if is_cast(bias) else bias
            return torch.ops.nm_sparse.linear(x, weight, bias, s.text)

    LIBRARY.impl("linear", linear, f"Autocast{device}")


LIBRARY.impl("linear", _linear_reference, "CompositeExplicitAutograd")
torch.library.register_fake("nm_sparse::linear", _linear_fake, lib=LIBRARY)
torch.library.register_autograd(
    "nm_sparse::linear",
    _linear_backward,
    setup_context=_save_for_backward,
    lib=LIBRARY,
)
torch.library.register_vmap("nm_sparse::linear", _linear_vmap, lib=LIBRARY)
_autocast("CPU")
_autocast("CUDA")
