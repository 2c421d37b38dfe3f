# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of `quantize_tokens` that store elements feature-major, in triton.

Many tokens take two: one finds the scale of each row, and another reads blocks of
tokens and features, often from the L2 cache, and stores them transposed. No program
then waits for all of a row, and stores are as long as loads. For few tokens a second
launch would take longer: programs of one kernel share a row, and each looks for its
largest number itself.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Optional, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .quantize_kernel import _larger, to_elements
from .spec import DTYPES
from .token_layout import empty_feature_major

_WIDEST = 32768  # numbers of a row that a program reads at once
_SHORT = 2048  # numbers that a program reads, of several rows where they are shorter
# Tokens and features of a block, and its warps: a thread has 32 numbers, four tokens
# of eight features. Tokens divide the pitch of a buffer, so that no block ends behind
# it. The smaller block is for few numbers: 32 bytes are the least that memory takes.
_BLOCKS = ((64, 4), (32, 2))
_FEATURES = 64
# Few tokens, and few numbers of somewhat more, are quantized by one kernel.
_FEW, _SOME, _NUMBERS = 4, 15, 65536
_FEW_FEATURES = 512  # which it writes at once, a thread each


class Plan(NamedTuple):
    """How tokens are quantized.

    tokens:  of a block of the second kernel; 0 where there is one kernel.
    warps:   that a block has.
    part:    features that a program of one kernel writes in all.
    grid:    programs of the one kernel, along tokens and features, or of the second.
    """

    tokens: int
    warps: int
    part: int
    grid: Tuple[int, ...]


def plan(tokens: int, columns: int, processors: int, has_scale: bool) -> Plan:
    """The plan for x [tokens, columns] on a GPU of so many processors. What triton
    compiles depends on `columns`, and on which of three forms the plan has."""
    if not has_scale and tokens <= _SOME:
        if tokens <= _FEW or tokens * columns < _NUMBERS:
            return _plan_few(tokens, columns, processors)
    for size, warps in _BLOCKS:
        found = _plan_blocks(tokens, columns, size, warps)
        if found.grid[0] >= 2 * processors:
            break
    return found


def _plan_few(tokens: int, columns: int, processors: int) -> Plan:
    splits = max(1, min(processors // tokens, -(-columns // _FEW_FEATURES)))
    part = -(-columns // (splits * _FEW_FEATURES)) * _FEW_FEATURES
    return Plan(0, 16, part, (tokens, -(-columns // part)))


def _plan_blocks(tokens: int, columns: int, size: int, warps: int) -> Plan:
    return Plan(size, warps, 0, (-(-tokens // size) * -(-columns // _FEATURES),))


def _wide(columns: int) -> int:
    """Numbers of a row that are read at once for its largest."""
    return max(16, min(_WIDEST, triton.next_power_of_2(columns)))


@triton.jit
def _scale_of(x, is_row, columns, unit, least, WIDE: tl.constexpr):
    """Scales of the rows at x [rows, 1]; is_row [rows]."""
    most = tl.zeros(is_row.shape, tl.float32)
    for start in range(0, columns, WIDE):
        at = (start + tl.arange(0, WIDE))[None, :]
        part = tl.load(x + at, mask=is_row[:, None] & (at < columns), other=0.0)
        found = tl.reduce(tl.abs(part.to(tl.float32)), 1, _larger)
        most = _larger(most, found)
    return tl.maximum(most, least, tl.PropagateNan.ALL) * unit


@triton.jit(do_not_specialize=["tokens"])
def _find_scales(
    x,
    scales,
    tokens,
    columns,
    row_stride,
    unit,
    least,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Scales of ROWS rows, each read once."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_row = rows < tokens
    x += rows.to(tl.int64)[:, None] * row_stride
    scale = _scale_of(x, is_row, columns, unit, least, WIDE)
    tl.store(scales + rows, scale, mask=is_row)


@triton.jit
def _read(x, row, at, tokens, columns, row_stride):
    x += row.to(tl.int64)[:, None] * row_stride + at[None, :]
    mask = (row < tokens)[:, None] & (at < columns)[None, :]
    return tl.load(x, mask=mask, other=0.0)


@triton.jit
def _bytes(
    part,
    row,
    out,
    scales,
    tokens,
    largest,
    HAS_SCALE: tl.constexpr,
    IS_INTEGER: tl.constexpr,
):
    """Elements of the rows, as numbers of 32 bits."""
    if HAS_SCALE:
        inverse = tl.math.div_rn(1.0, tl.load(scales))
    else:
        scale = tl.load(scales + row, mask=row < tokens, other=1.0)
        inverse = tl.math.div_rn(1.0, scale)[:, None]
    part = to_elements(part.to(tl.float32) * inverse, largest, IS_INTEGER)
    return part.to(out.dtype.element_ty).to(tl.uint8, bitcast=True).to(tl.uint32)


@triton.jit(do_not_specialize=["tokens"])
def _transpose(
    x,
    out,
    scales,
    tokens,
    columns,
    row_stride,
    pitch,
    largest,
    TOKENS: tl.constexpr,
    FEATURES: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    IS_INTEGER: tl.constexpr,
):
    """A block of TOKENS rows and FEATURES columns."""
    # The last rows come first: the L2 cache may still have them.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    across = tl.cdiv(columns, FEATURES)
    first = block // across * TOKENS
    at = block % across * FEATURES + tl.arange(0, FEATURES)
    # Four tokens are read apart, so that a thread has all of a word of elements, and
    # shared memory exchanges words, not bytes.
    words = tl.arange(0, TOKENS // 4)
    row = first + 4 * words
    a = _read(x, row, at, tokens, columns, row_stride)
    b = _read(x, row + 1, at, tokens, columns, row_stride)
    c = _read(x, row + 2, at, tokens, columns, row_stride)
    d = _read(x, row + 3, at, tokens, columns, row_stride)
    a = _bytes(a, row, out, scales, tokens, largest, HAS_SCALE, IS_INTEGER)
    b = _bytes(b, row + 1, out, scales, tokens, largest, HAS_SCALE, IS_INTEGER)
    c = _bytes(c, row + 2, out, scales, tokens, largest, HAS_SCALE, IS_INTEGER)
    d = _bytes(d, row + 3, out, scales, tokens, largest, HAS_SCALE, IS_INTEGER)
    word = a | b << 8 | c << 16 | d << 24
    # Behind the last token there are zeros: rows of the buffer are long enough, and
    # writes that ask for each token would be of single bytes.
    out = out.to(tl.pointer_type(tl.uint32)) + first // 4
    out += at.to(tl.int64)[:, None] * (pitch // 4) + words[None, :]
    tl.store(out, tl.trans(word), mask=(at < columns)[:, None])


@triton.jit
def _quantize_few(
    x,
    out,
    scales,
    columns,
    row_stride,
    pitch,
    part,
    largest,
    unit,
    least,
    WIDE: tl.constexpr,
    NARROW: tl.constexpr,
    IS_INTEGER: tl.constexpr,
):
    """A row, of which `part` columns are written, NARROW at once."""
    row = tl.program_id(0) + tl.arange(0, 1)
    x += row.to(tl.int64)[:, None] * row_stride
    scale = _scale_of(x, row >= 0, columns, unit, least, WIDE)
    if tl.program_id(1) == 0:
        tl.store(scales + row, scale)
    inverse = tl.math.div_rn(1.0, scale)[:, None]
    out += row[:, None]
    first = tl.program_id(1) * part
    end = tl.minimum(first + part, columns)
    for start in range(first, end, NARROW):
        at = (start + tl.arange(0, NARROW))[None, :]
        block = tl.load(x + at, mask=at < end, other=0.0).to(tl.float32)
        block = to_elements(block * inverse, largest, IS_INTEGER)
        to = out + at.to(tl.int64) * pitch
        tl.store(to, block.to(out.dtype.element_ty), mask=at < end)


@functools.lru_cache(maxsize=None)
def _processors(device: torch.device) -> int:
    if device.type != "cuda":  # triton's interpreter
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def quantize_columns(
    x: Tensor, kind: str, scale: Optional[Tensor], largest: float, least: float
) -> Tuple[Tensor, Tensor]:
    """Elements [..., K], stored feature-major, and scales of x [..., K], which has an
    element, on its GPU.

    kind:     of the elements, as in MLIR.
    scale:    as for `quantize_tokens`.
    largest:  element; least: number that scales are made for.
    """
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    buffer, out = empty_feature_major(x, DTYPES[kind])
    found = scale
    if found is None:
        shape = (*x.shape[:-1], 1)
        found = torch.empty(shape, dtype=torch.float32, device=x.device)
    own = kind, scale is not None, largest, least
    if x.is_cuda:
        with torch.cuda.device(x.device):
            launch(rows, buffer, found, *own)
    else:
        launch(rows, buffer, found, *own)
    return out, found


def launch(
    rows: Tensor,
    buffer: Tensor,
    scales: Tensor,
    kind: str,
    has_scale: bool,
    largest: float,
    least: float,
    planned: Optional[Plan] = None,
) -> None:
    """Launches the kernels for rows [tokens, K] and a buffer [K, pitch] on the current
    device, by default those of `plan`."""
    tokens, columns = rows.shape
    row_stride, pitch = rows.stride(0), buffer.stride(0)
    own = planned or plan(tokens, columns, _processors(rows.device), has_scale)
    wide, unit, is_integer = _wide(columns), 1 / largest, kind == "i8"
    if not own.tokens:
        sizes = columns, row_stride, pitch, own.part
        numbers = largest, unit, least, wide, _FEW_FEATURES, is_integer
        _quantize_few[own.grid](
            rows, buffer, scales, *sizes, *numbers, num_warps=own.warps
        )
        return
    sizes = tokens, columns, row_stride
    if not has_scale:
        several = max(1, _SHORT // wide)
        warps = min(16, several * wide // 512) if wide > 16384 else 0
        warps = warps or max(1, min(8, several * wide // 512))
        _find_scales[(-(-tokens // several),)](
            rows, scales, *sizes, unit, least, several, wide, num_warps=warps
        )
    blocks = own.tokens, _FEATURES, has_scale, is_integer
    _transpose[own.grid](
        rows, buffer, scales, *sizes, pitch, largest, *blocks, num_warps=own.warps
    )


@functools.lru_cache(maxsize=None)
def prepare(
    columns: int,
    dtype: torch.dtype,
    device: torch.device,
    kind: str,
    has_scale: bool,
    largest: float,
    least: float,
) -> None:
    """Has triton compile and load what rows of this length and type need, for any
    number of them, which cannot be done while a CUDA graph is captured."""
    x = torch.zeros(1, columns, dtype=dtype, device=device)
    buffer, _ = empty_feature_major(x, DTYPES[kind])
    scales = torch.ones(1, device=device)
    plans = [_plan_blocks(1, columns, *own) for own in _BLOCKS]
    if not has_scale:
        plans.append(_plan_few(1, columns, _processors(device)))
    with torch.cuda.device(device):
        for own in plans:
            launch(x, buffer, scales, kind, has_scale, largest, least, own)
