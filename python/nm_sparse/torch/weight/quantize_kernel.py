# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `quantize_tokens`, in triton: a program for each row."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .spec import DTYPES

_MOST_ELEMENTS = 8192  # of a row that a program has at once


@triton.jit
def _quantize(
    x,
    out,
    scales,
    columns,
    row_stride,
    largest,
    inverse,
    least,
    BLOCK: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    IS_INTEGER: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    x += row * row_stride
    out += row * columns
    if HAS_SCALE:
        scale = tl.load(scales)
    else:
        most = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, columns, BLOCK):
            at = start + offsets
            part = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
            # A NaN stays one, as in the operators of torch.
            most = tl.maximum(most, tl.abs(part), tl.PropagateNan.ALL)
        scale = tl.reduce(most, 0, _larger)
        scale = tl.maximum(scale, least, tl.PropagateNan.ALL)
        scale = scale * inverse  # as torch divides by numbers on GPUs
        tl.store(scales + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + offsets
        part = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        part = tl.math.div_rn(part, scale)
        if IS_INTEGER:
            # Adding and taking away 1.5 * 2^23 rounds to the nearest even integer.
            part = tl.clamp(part, -largest, largest)
            part = (part + 12582912.0) - 12582912.0
        part = tl.clamp(part, -largest, largest, tl.PropagateNan.ALL)
        tl.store(out + at, part.to(out.dtype.element_ty), mask=at < columns)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, tl.PropagateNan.ALL)


def quantize_rows(
    x: Tensor, kind: str, scale: Optional[Tensor], largest: float, least: float
) -> Tuple[Tensor, Tensor]:
    """Elements and scales of x [..., K], which has an element, on its GPU.

    kind:     of the elements, as in MLIR.
    scale:    as for `quantize_tokens`.
    largest:  element; least: number that scales are made for.
    """
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    count, columns = rows.shape
    out = torch.empty((count, columns), dtype=DTYPES[kind], device=x.device)
    found = scale
    if found is None:
        found = torch.empty((count, 1), dtype=torch.float32, device=x.device)
    block = min(triton.next_power_of_2(columns), _MOST_ELEMENTS)
    with torch.cuda.device(x.device):
        _quantize[(count,)](
            rows,
            out,
            found,
            columns,
            rows.stride(0),
            largest,
            1 / largest,
            least,
            BLOCK=block,
            HAS_SCALE=scale is not None,
            IS_INTEGER=kind == "i8",
            num_warps=max(1, min(8, block // 256)),
        )
    if scale is None:
        found = found.view(*x.shape[:-1], 1)
    return out.view(x.shape), found
