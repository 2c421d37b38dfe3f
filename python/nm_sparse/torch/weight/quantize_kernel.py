# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `quantize_tokens`, in triton: a program reads a row once."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .spec import DTYPES


@triton.jit
def _load(x, at, columns):
    return tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)


@triton.jit
def _largest(part):
    # A NaN stays one, as in the operators of torch.
    return tl.reduce(tl.abs(part), 0, _larger)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, tl.PropagateNan.ALL)


@triton.jit
def to_elements(part, largest, IS_INTEGER: tl.constexpr):
    """Numbers that are elements, or that conversion rounds to them."""
    if IS_INTEGER:
        # Adding and taking away 1.5 * 2^23 rounds to the nearest even integer.
        part = tl.clamp(part, -largest, largest)
        part = (part + 12582912.0) - 12582912.0
    return tl.clamp(part, -largest, largest, tl.PropagateNan.ALL)


@triton.jit
def _store(out, at, columns, part, inverse, largest, IS_INTEGER: tl.constexpr):
    part = to_elements(part * inverse, largest, IS_INTEGER)
    tl.store(out + at, part.to(out.dtype.element_ty), mask=at < columns)


@triton.jit
def _quantize(
    x,
    out,
    scales,
    columns,
    row_stride,
    largest,
    unit,
    least,
    HEAD: tl.constexpr,
    TAIL: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    IS_INTEGER: tl.constexpr,
):
    """A row, as HEAD elements and as many more as TAIL, a power of two, or 0, has."""
    row = tl.program_id(0).to(tl.int64)
    x += row * row_stride
    out += row * columns
    at = tl.arange(0, HEAD)
    head = _load(x, at, columns)
    if TAIL > 0:
        behind = HEAD + tl.arange(0, TAIL)
        tail = _load(x, behind, columns)
    if HAS_SCALE:
        scale = tl.load(scales)
    else:
        most = _largest(head)
        if TAIL > 0:
            most = _larger(most, _largest(tail))
        scale = tl.maximum(most, least, tl.PropagateNan.ALL) * unit
        tl.store(scales + row, scale)
    inverse = tl.math.div_rn(1.0, scale)
    _store(out, at, columns, head, inverse, largest, IS_INTEGER)
    if TAIL > 0:
        _store(out, behind, columns, tail, inverse, largest, IS_INTEGER)


def _split(columns: int) -> Tuple[int, int]:
    """HEAD and TAIL: with few threads that have no element."""
    head = triton.next_power_of_2(columns + 1) // 2  # the largest up to `columns`
    rest = columns - head
    if 2 * rest > head:
        return 2 * head, 0
    return head, triton.next_power_of_2(rest) if rest else 0


def quantize_rows(
    x: Tensor, kind: str, scale: Optional[Tensor], largest: float, least: float
) -> Tuple[Tensor, Tensor]:
    """Elements and scales of x [..., K], which has an element, on its GPU. Registers
    hold a row.

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
    with torch.cuda.device(x.device):
        launch(rows, out, found, kind, scale is not None, largest, least)
    if scale is None:
        found = found.view(*x.shape[:-1], 1)
    return out.view(x.shape), found


def launch(
    rows: Tensor,
    out: Tensor,
    scales: Tensor,
    kind: str,
    has_scale: bool,
    largest: float,
    least: float,
) -> Tuple[Any, Tuple[Any, ...]]:
    """Launches the kernel, a program for each row, on the current device.

    Returns the compiled kernel and its arguments behind `scales`. They are the same
    for all rows [tokens, K] of one type and length, K numbers apart, that begin at a
    multiple of 16 bytes.
    """
    count, columns = rows.shape
    head, tail = _split(columns)
    numbers = columns, rows.stride(0), largest, 1 / largest, least
    arguments = *numbers, head, tail, has_scale, kind == "i8"
    warps = max(1, min(8 if head + tail <= 16384 else 16, head // 512))
    kernel = _quantize[(count,)](rows, out, scales, *arguments, num_warps=warps)
    return kernel, arguments
