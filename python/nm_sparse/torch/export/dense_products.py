# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of this package as operators of ATen with dense weights, which one more
operator makes of packed ones:

    nm_sparse::unpack_weight(Tensor[] weight, str spec) -> Tensor
        [outputs, inputs] of a packed weight, whose `LinearSpec` is `spec`
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..layers.halved_ops import products, scaled_products
from ..layers.mlp_ops import mlp_specs
from ..layers.ops import activate
from ..layers.shared_ops import split_layers
from ..weight.quantize import quantize_by_operators
from ..weight.spec import LinearSpec
from .text import ExportError


@torch.library.custom_op(
    "nm_sparse::unpack_weight",
    mutates_args=(),
    schema="(Tensor[] weight, str spec) -> Tensor",
)
def _unpack(weight: List[Tensor], spec: str) -> Tensor:
    """By a product with the identity."""
    inputs = LinearSpec.parse(spec).shape[1]
    one = torch.eye(inputs, dtype=weight[0].dtype, device=weight[0].device)
    return torch.ops.nm_sparse.linear(one, weight, None, spec).t().contiguous()


@_unpack.register_fake
def _unpack_fake(weight: List[Tensor], spec: str) -> Tensor:
    return weight[0].new_empty(LinearSpec.parse(spec).shape)


UNPACK = torch.ops.nm_sparse.unpack_weight.default


def _product(
    x: Tensor, weight: Sequence[Tensor], bias: Optional[Tensor], s: LinearSpec
) -> Tensor:
    """activation(x W^T + bias). The product is rounded to the type of x; where that is
    narrower than f32, the rest is computed in f32."""
    if x.dtype != s.torch_dtype:
        raise ExportError(
            f"x is {x.dtype} and a packed weight {s.torch_dtype}: legal is one type"
        )
    own = replace(s, activation="none", dense_from=None, decode_to=None)
    dense = UNPACK(list(weight), own.text)
    y = F.linear(x, dense)
    if bias is not None or s.activation != "none":
        wide = torch.float32 if x.dtype.itemsize < 4 else x.dtype
        y = y.to(wide)
        y = y if bias is None else y + bias
        y = activate(y, s.activation).to(x.dtype)
    return y


def _linear(x: Tensor, weight: Any, bias: Optional[Tensor], spec: str) -> Tensor:
    return _product(x, weight, bias, LinearSpec.parse(spec))


def _gated(x: Tensor, gate: Any, up: Any, spec: str) -> Tensor:
    first = LinearSpec.parse(spec)
    second = replace(first, activation="none")
    return _product(x, gate, None, first) * _product(x, up, None, second)


def _mlp(x: Tensor, gate: Any, up: Any, down: Any, spec: str) -> Tensor:
    first, _, last = mlp_specs(spec)
    return _product(_gated(x, gate, up, first.text), down, None, last)


def _shared(x: Tensor, *operands: Any) -> List[Tensor]:
    return [_product(x, *layer) for layer in split_layers(*operands)]


# Operators that are products and plain operators, for ExportedProgram.
# run_decompositions.
PLAIN: Dict[Any, Any] = {
    torch.ops.nm_sparse.gated_linear.default: products,
    torch.ops.nm_sparse.scaled_gated_linear.default: scaled_products,
    torch.ops.nm_sparse.quantize_rows.default: quantize_by_operators,
}
DECOMPOSITIONS: Dict[Any, Any] = {
    **PLAIN,
    torch.ops.nm_sparse.linear.default: _linear,
    torch.ops.nm_sparse.gated_mlp.default: _gated,
    torch.ops.nm_sparse.mlp.default: _mlp,
    torch.ops.nm_sparse.linear_shared.default: _shared,
}
