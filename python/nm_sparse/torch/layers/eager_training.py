# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer that is called eagerly, with gradients, by kernels that are found already.

torch's dispatcher takes several times as long for an operator with gradients that are
written in Python: docs/decisions/091-eager-gradients.md.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ..weight.spec import LinearSpec
from ..weight.weight import PackedWeight, components_of
from .ops import linear_gradients, saves


class _RecordedLinear(torch.autograd.Function):
    """Records that `results` are activation(x W^T + bias); the gradients are those of
    the operator `nm_sparse::linear`."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        x: Tensor,
        weight: PackedWeight,
        bias: Optional[Tensor],
        spec: str,
        results: List[Tensor],
    ) -> Tensor:
        (y,) = results
        activation = LinearSpec.parse(spec).activation
        has_x, has_bias, has_result = saves(activation, ctx.needs_input_grad[1])
        ctx.spec = spec
        ctx.save_for_backward(
            x if has_x else None,
            bias if has_bias else None,
            y if has_result else None,
            weight,
        )
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        *saved, weight = ctx.saved_tensors
        dx, dvalues, db = linear_gradients(
            dy,
            tuple(saved),
            components_of(weight),
            ctx.spec,
            ctx.needs_input_grad[:3],
            dy,
        )
        dweight = None
        if dvalues is not None:
            dweight = weight.with_components({"values": dvalues})
            dweight.shares_positions = True
        dx = None if dx is None else dx.reshape(*dy.shape[:-1], dx.shape[-1])
        db = None if db is None else db.to(dy.dtype)
        return dx, dweight, db, None, None


# recorded_linear(x, weight, bias, spec, results): the result, whose gradients are
# recorded; `results` has it alone, in a list, so that it is no operand. This is the
# `apply` that `Function.apply` calls: that one takes as long as all the rest to look
# for transforms, of which there are none here (`plain.py`).
recorded_linear = super(torch.autograd.Function, _RecordedLinear).apply
