# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of x and weights with scales on a GPU by dense copies of the elements: for
many tokens (`dense_from`), and for patterns that have no kernels of 8 bits."""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch
from torch import Tensor

from ..weight.spec import LinearSpec
from ..weight.stored_forms import STORED
from .dense_copies import dense_form
from .ops import activate, as_rows
from .scaled_ops import finish
from .shared_ops import Layer

_ROWS = 32  # of products of integers, at least


def dense_elements(weight: Sequence[Tensor], spec: LinearSpec) -> Tensor:
    """The elements [N, K], a copy that is kept as long as the weight."""
    form = dense_form(spec.unscaled.canonical)
    return STORED.get(weight[:-1], form, spec.storage)[0]


def _is_aligned(rows: Tensor, spec: LinearSpec) -> bool:
    """Whether torch's products of 8 bits take these sizes."""
    return rows.shape[0] > 0 and all(size % 16 == 0 and size for size in spec.shape)


def _sums_of_floats(rows: Tensor, dense: Tensor) -> Tensor:
    one = torch.ones((), dtype=torch.float32, device=rows.device)
    return torch._scaled_mm(
        rows, dense.t(), scale_a=one, scale_b=one, out_dtype=torch.float32
    )


def _sums_of_integers(rows: Tensor, dense: Tensor) -> Tensor:
    count = rows.shape[0]
    if count < _ROWS:
        rows = torch.nn.functional.pad(rows, (0, 0, 0, _ROWS - count))
    return torch._int_mm(rows, dense.t())[:count]


def _product(
    rows: Tensor,
    x_scale: Tensor,
    dense: Tensor,
    scale: Tensor,
    bias: Optional[Tensor],
    spec: LinearSpec,
) -> Tensor:
    """activation(rows dense^T * x_scale * scale + bias)."""
    is_float = rows.dtype != torch.int8
    has_floats = torch.cuda.get_device_capability(rows.device) >= (8, 9)
    if not _is_aligned(rows, spec) or (is_float and not has_floats):
        wide = torch.float32 if is_float else torch.float64
        return finish(rows.to(wide) @ dense.to(wide).t(), x_scale, scale, bias, spec)
    if not is_float:
        sums = _sums_of_integers(rows, dense)
        return finish(sums, x_scale, scale, bias, spec)
    if spec.torch_dtype != torch.bfloat16:
        return finish(_sums_of_floats(rows, dense), x_scale, scale, bias, spec)
    # The one type for which torch applies scales of tokens and outputs itself.
    of_rows = x_scale.reshape(-1, 1).expand(len(rows), 1).contiguous()
    y = torch._scaled_mm(
        rows,
        dense.t(),
        scale_a=of_rows,
        scale_b=scale[None],
        bias=bias,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )
    return activate(y, spec.activation)


def dense_products(
    x: Tensor, x_scale: Tensor, layers: Sequence[Layer], gated: bool
) -> List[Tensor]:
    """The results [..., N] of layers; of a gated MLP the one of both."""
    rows = as_rows(x).contiguous()
    found = []
    for weight, bias, spec in layers:
        dense = dense_elements(weight, spec)
        y = _product(rows, x_scale, dense, weight[-1], bias, spec)
        found.append(y.reshape(x.shape[:-1] + (spec.shape[0],)))
    return [found[0] * found[1]] if gated else found
