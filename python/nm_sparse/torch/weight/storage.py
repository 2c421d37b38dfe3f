# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packed forms of a weight, made of each other on its device.

Bitmaps and K-major values are those of section 7 of docs/Encoding.md;
`nm_sparse.pack_bitmap`, `unpack_bitmap`, `pack_k_major` and `unpack_k_major` are their
reference. Both ways of bitmaps go through some blocks of outputs at a time, so that
what lies between the forms never takes as much memory as they do.

    nm_sparse::unpack_bitmap(Tensor values, Tensor bits, str spec) -> (Tensor, Tensor)

is an operator, so that graphs have one node for it.
"""

from __future__ import annotations

from typing import Iterator, List, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...encoding import Encoding, EncodingError, packed_shapes
from ...packing.bitmap import (
    OUTPUTS,
    PIECE,
    BitmapShape,
    bitmap_shape,
    innermost_weight,
)
from ...packing.k_major import k_major_shape
from .levels import bits_of, index_dtype, unsigned
from .spec import LinearSpec, check_storage

_SLICE = 1 << 21  # elements, dense, between the forms at a time
_MASKS = ((7, 0x0003000300030003), (14, 0x0000000F0000000F), (28, 0xFF))


def to_storage(
    components: Sequence[Tensor], spec: LinearSpec, form: str
) -> List[Tensor]:
    """The components in another packed form.

    components:  canonical, in their order; a scale stays what it is.
    spec:        encoding, shape and type of the weight.
    form:        "canonical"; or "bitmap": the values, of two levels the index of the
                 outer one, the bits (int32, read as unsigned), and perm if there is
                 one; or "k_major": the values, transposed, and the index.

    Components that both forms have are not copied. Raises EncodingError when there is
    no such form.
    """
    if form == "canonical":
        return list(components)
    if spec.elements is not None:
        return [*to_storage(components[:-1], spec.unscaled, form), components[-1]]
    check_storage(form, spec.encoding, spec.torch_dtype)
    if form == "k_major":
        return [_transpose(components[0], spec), *components[1:]]
    last = len(spec.encoding.levels)
    inner, rows, outputs = innermost_weight(spec.encoding, *spec.shape[::-1])
    values, bits = _pack(components[0], components[last], inner, rows, outputs)
    return [values, *components[1:last], bits, *components[last + 1 :]]


def from_storage(components: Sequence[Tensor], spec: LinearSpec) -> List[Tensor]:
    """The canonical components of those in the form `spec.storage`, bit for bit.

    What both forms have is not copied. Bits are taken as they are; those that no
    encoder writes give any values and positions. Padding of K-major values is left out,
    whatever it holds.
    """
    if spec.storage == "canonical":
        return list(components)
    if spec.elements is not None:
        return [*from_storage(components[:-1], spec.unscaled), components[-1]]
    if spec.storage == "k_major":
        return [_transpose_back(components[0], spec), *components[1:]]
    last = len(spec.encoding.levels)
    values, index = torch.ops.nm_sparse.unpack_bitmap(
        components[0].detach(), components[last], spec.text
    )
    return [values, *components[1:last], index, *components[last + 1 :]]


def clear_padding(values: Tensor, spec: LinearSpec) -> None:
    """Makes zero what the form of a weight adds to its canonical values, where kernels
    rely on that: of K-major values."""
    if spec.storage == "k_major":
        values.detach()[:, _kept_rows(spec) :].zero_()


def check_padding(values: Tensor, spec: LinearSpec) -> None:
    """Raises EncodingError where that is not +0."""
    if spec.storage == "k_major":
        added = values.detach()[:, _kept_rows(spec) :].contiguous()
        if bool(bits_of(added).any()):
            raise EncodingError(
                f"values are not +0 behind the {_kept_rows(spec)} rows that are kept: "
                "legal is +0 up to a multiple of 16"
            )


def _kept_rows(spec: LinearSpec) -> int:
    """The number of rows of the canonical values."""
    return packed_shapes(spec.encoding, spec.shape)["values"][0]


def _transpose(values: Tensor, spec: LinearSpec) -> Tensor:
    """K-major values of canonical ones, a copy."""
    plain = bits_of(values.detach())
    stored = plain.new_zeros(k_major_shape(spec.encoding, *spec.shape[::-1]))
    stored[:, : plain.shape[0]] = plain.t()
    return stored.view(values.dtype)


def _transpose_back(values: Tensor, spec: LinearSpec) -> Tensor:
    """Canonical values of K-major ones, a copy."""
    rows = bits_of(values.detach())[:, : _kept_rows(spec)].t()
    return rows.clone(memory_format=torch.contiguous_format).view(values.dtype)


def _slices(shape: BitmapShape) -> Iterator[Tuple[int, int]]:
    """Blocks from one to another, all of them."""
    size = max(1, shape.tiles * shape.tile_rows * OUTPUTS)
    step = max(1, _SLICE // size)
    for begin in range(0, shape.blocks, step):
        yield begin, min(begin + step, shape.blocks)


def _pack(
    values: Tensor, index: Tensor, e: Encoding, k: int, n: int
) -> Tuple[Tensor, Tensor]:
    """Values [blocks, tiles, tile_values * 32] and bits [blocks, tiles, 32 * words] of
    a weight of one level that contracts k, with n outputs."""
    shape = bitmap_shape(e, k, n, values.element_size())
    plain = bits_of(values.contiguous())
    blocks, tiles, _, tile_values, words = shape
    stored = plain.new_empty(blocks, tiles, tile_values * OUTPUTS)
    bits = index.new_empty((blocks, tiles, OUTPUTS * words), dtype=torch.int32)
    for begin, end in _slices(shape):
        stored[begin:end] = _pack_values(plain, shape, begin, end)
        bits[begin:end] = _pack_bits(index, e, shape, begin, end)
    return stored.view(values.dtype), bits


def _pack_values(plain: Tensor, shape: BitmapShape, begin: int, end: int) -> Tensor:
    """Those of the blocks from `begin` to `end`, zeros where `plain` has none."""
    piece = PIECE // plain.element_size()
    count, rows = (end - begin) * OUTPUTS, shape.tiles * shape.tile_values
    part = plain[:, begin * OUTPUTS : end * OUTPUTS]
    part = F.pad(part, (0, count - part.shape[1], 0, rows - part.shape[0]))
    pieces = shape.tile_values // piece
    part = part.reshape(shape.tiles, pieces, piece, end - begin, OUTPUTS)
    part = part.permute(3, 0, 1, 4, 2)
    return part.reshape(end - begin, shape.tiles, shape.tile_values * OUTPUTS)


def _pack_bits(
    index: Tensor, e: Encoding, shape: BitmapShape, begin: int, end: int
) -> Tensor:
    """Which rows the outputs of the blocks from `begin` to `end` keep; where the
    canonical form has nothing, the first ones of each window."""
    (bk, bn), tiles = e.block, shape.tiles
    count, windows = (end - begin) * OUTPUTS, index.shape[0] // e.n
    padded = tiles * shape.tile_rows // (e.m * bk)
    blocks = torch.zeros((count, padded, e.m), dtype=torch.bool, device=index.device)
    blocks[:, :, : e.n] = True
    stop = min(end * OUTPUTS, index.shape[1] * bn)
    outputs = torch.arange(begin * OUTPUTS, stop, device=index.device)
    if len(outputs) > 0 and windows > 0:
        kept = unsigned(index.t().index_select(0, outputs // bn))
        common = blocks[: len(outputs), :windows]
        common.fill_(False).scatter_(2, kept.reshape(-1, windows, e.n), True)
    rows = blocks.repeat_interleave(bk, dim=2) if bk > 1 else blocks
    rows = rows.reshape(end - begin, OUTPUTS, tiles, shape.tile_rows).transpose(1, 2)
    rows = F.pad(rows, (0, shape.words * 32 - shape.tile_rows))
    return _words(rows).reshape(end - begin, tiles, OUTPUTS * shape.words)


def _words(rows: Tensor) -> Tensor:
    """bool [..., 32 * words] as int32 [..., words], from the highest bit on."""
    lead, count = rows.shape[:-1], rows.shape[-1] // 32
    # The last of 32 rows first: the lowest bit, of the first byte in memory.
    flipped = rows.reshape(*lead, count, 32).flip(-1)
    packed = flipped.view(torch.int64)  # a byte of 0 or 1 for each row
    for shift, mask in _MASKS:
        packed = (packed | (packed >> shift)) & mask
    return packed.to(torch.uint8).view(torch.int32).reshape(*lead, count)


def _rows(words: Tensor) -> Tensor:
    """int32 [..., words] as bool [..., 32 * words]."""
    lead, count = words.shape[:-1], words.shape[-1]
    parts = words.contiguous().view(torch.uint8).reshape(*lead, count, 4, 1)
    places = torch.arange(8, dtype=torch.uint8, device=words.device)
    bits = ((parts >> places) & 1).view(torch.bool)
    return bits.reshape(*lead, count, 32).flip(-1).reshape(*lead, count * 32)


def _unpack(
    values: Tensor, bits: Tensor, e: Encoding, k: int, n: int
) -> Tuple[Tensor, Tensor]:
    """The canonical values [W * n * bk, P * bn] and index [W * n, P]."""
    shape = bitmap_shape(e, k, n, values.element_size())
    canonical = packed_shapes(Encoding(e.n, e.m, e.block), (k, n))
    plain = bits_of(values.contiguous())
    found = plain.new_zeros(canonical["values"])
    index = bits.new_empty(canonical["index"], dtype=index_dtype(e.m))
    for begin, end in _slices(shape):
        part = found[:, begin * OUTPUTS : end * OUTPUTS]
        part.copy_(
            _unpack_values(plain, shape, begin, end)[: len(part), : part.shape[1]]
        )
        panels, positions = _unpack_bits(bits, e, shape, begin, end, index.shape)
        index[:, panels] = positions
    return found.view(values.dtype), index


def _unpack_values(plain: Tensor, shape: BitmapShape, begin: int, end: int) -> Tensor:
    """[tiles * tile_values, outputs] of the blocks from `begin` to `end`."""
    piece = PIECE // plain.element_size()
    pieces = shape.tile_values // piece
    part = plain[begin:end].reshape(end - begin, shape.tiles, pieces, OUTPUTS, piece)
    part = part.permute(1, 2, 4, 0, 3)
    return part.reshape(shape.tiles * shape.tile_values, (end - begin) * OUTPUTS)


def _unpack_bits(
    bits: Tensor,
    e: Encoding,
    shape: BitmapShape,
    begin: int,
    end: int,
    canonical: Sequence[int],
) -> Tuple[slice, Tensor]:
    """The panels whose first output lies in the blocks from `begin` to `end`, and their
    positions, [W * n, panels] of the shape `canonical`."""
    (bk, bn), tiles, count = e.block, shape.tiles, (end - begin) * OUTPUTS
    first = -(-begin * OUTPUTS // bn)
    last = max(first, min(-(-end * OUTPUTS // bn), canonical[1]))
    lanes = bits[begin:end].reshape(end - begin, tiles, OUTPUTS, shape.words)
    lanes = lanes.transpose(1, 2).reshape(count, tiles, shape.words)
    lanes = lanes[first * bn - begin * OUTPUTS :: bn][: last - first]
    rows = _rows(lanes)[:, :, : shape.tile_rows]
    blocks = rows.reshape(last - first, tiles * shape.tile_rows // (e.m * bk), e.m, bk)
    blocks = blocks[:, : canonical[0] // e.n, :, 0].to(torch.uint8)
    # Those that are kept, in their order, and then the others.
    order = torch.sort(blocks, dim=2, descending=True, stable=True).indices
    positions = order[:, :, : e.n].reshape(last - first, canonical[0])
    return slice(first, last), positions.t().to(index_dtype(e.m))


@torch.library.custom_op(
    "nm_sparse::unpack_bitmap",
    mutates_args=(),
    schema="(Tensor values, Tensor bits, str spec) -> (Tensor, Tensor)",
)
def _unpack_operator(values: Tensor, bits: Tensor, spec: str) -> Tuple[Tensor, Tensor]:
    s = LinearSpec.parse(spec)
    return _unpack(values, bits, *innermost_weight(s.encoding, *s.shape[::-1]))


@_unpack_operator.register_fake
def _unpack_fake(values: Tensor, bits: Tensor, spec: str) -> Tuple[Tensor, Tensor]:
    s = LinearSpec.parse(spec)
    parts = list(s.canonical.components.values())
    (size, _), (places, dtype) = parts[0], parts[len(s.encoding.levels)]
    return values.new_empty(size), bits.new_empty(places, dtype=dtype)
