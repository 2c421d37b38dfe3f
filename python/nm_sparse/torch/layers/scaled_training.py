# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator of a layer with scales where gradients are recorded.

    nm_sparse::straight_through_linear(Tensor x, Tensor elements, Tensor x_scale,
                                       Tensor[] weight, Tensor? bias, str spec)
        -> Tensor
        `nm_sparse::scaled_linear` of `elements`, which are x rounded

x has the gradient of the product with what the weight stands for, as if it were not
rounded. The bias has one; weights with scales are not trained.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError
from ..weight.pack import perm_of
from ..weight.spec import LinearSpec
from ..weight.weight import LIBRARY
from .ops import (
    accumulator,
    as_rows,
    refuse_training,
    through_activation,
    unpacked_rows,
    with_fields,
)
from .scaled_ops import cast_linear, register_autocast

LIBRARY.define(
    "straight_through_linear(Tensor x, Tensor elements, Tensor x_scale, Tensor[] "
    "weight, Tensor? bias, str spec) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _forward(x: Tensor, elements: Tensor, *operands: Any) -> Tensor:
    if x.shape != elements.shape:
        raise EncodingError(
            f"x has shape {list(x.shape)}, and its elements {list(elements.shape)}: "
            "legal is the same"
        )
    return torch.ops.nm_sparse.scaled_linear(elements, *operands)


def _save(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    x, elements, x_scale, weight, bias, spec = inputs
    s = LinearSpec.parse(spec)
    refuse_training(weight, s)
    is_recomputed = s.activation not in ("none", "relu")
    ctx.spec, ctx.shape, ctx.count = spec, x.shape, len(weight)
    ctx.like, ctx.bias_type = x.new_empty(0), None if bias is None else bias.dtype
    ctx.save_for_backward(
        elements if is_recomputed else None,
        x_scale if is_recomputed else None,
        bias if is_recomputed else None,
        output if s.activation == "relu" else None,
        *weight,
    )


def _before_activation(
    dy: Tensor, saved: List[Optional[Tensor]], weight: List[Tensor], spec: str
) -> Tensor:
    """The gradient of what the activation is applied to."""
    elements, x_scale, bias, y = saved
    activation = LinearSpec.parse(spec).activation
    if activation == "none":
        return dy
    if y is not None:
        return torch.ops.aten.threshold_backward(dy, y, 0)
    plain = with_fields(spec, activation="none")
    operands = elements, x_scale, weight, None if bias is None else bias.detach()
    before = torch.ops.nm_sparse.scaled_linear(*operands, plain)
    return through_activation(dy, before, activation)


def _backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    tensors = ctx.saved_tensors  # once: recomputed ones are gone then
    saved, weight = list(tensors[:4]), list(tensors[4:])
    s, wide = LinearSpec.parse(ctx.spec), accumulator(ctx.like)
    dz = as_rows(_before_activation(dy, saved, weight, ctx.spec)).to(wide)
    dx, db = None, None
    if ctx.needs_input_grad[4]:
        db = dz.sum(0).to(ctx.bias_type)
    if ctx.needs_input_grad[0]:
        if s.encoding.is_shuffled:
            dz = dz.index_select(1, perm_of(weight, s.encoding).to(torch.int64))
        dx = dz @ unpacked_rows(weight, s, wide).t()
        dx = dx.to(ctx.like.dtype).reshape(ctx.shape)
    return dx, None, None, [None] * ctx.count, db, None


def _cast(dtype: torch.dtype, x: Tensor, *operands: Any) -> Any:
    return x, *cast_linear(dtype, *operands)


LIBRARY.impl("straight_through_linear", _forward, "CompositeExplicitAutograd")
torch.library.register_fake("nm_sparse::straight_through_linear", _forward, lib=LIBRARY)
torch.library.register_autograd(
    "nm_sparse::straight_through_linear", _backward, setup_context=_save, lib=LIBRARY
)
for _device in ("CPU", "CUDA"):
    register_autocast("straight_through_linear", _device, _cast)
