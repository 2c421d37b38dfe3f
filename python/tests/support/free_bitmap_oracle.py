# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps of free elements, version 5 of docs/Encoding.md, in numpy: to compare the
library (lib/Packing/Free) with.
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy as np
from bitmap_oracle import OUTPUTS, PIECE, _first

from nm_sparse import Encoding, EncodingError

ROWS = 256  # contraction steps of a tile of words
GROUP, GROUP_ROWS = 4, 32  # values of an output, and rows that they lie in
WINDOW_ROWS = 63  # that the outputs of a block are in at a time
SEGMENT = 64  # values of an output from one first row to the next
SEGMENT_WORDS = 1 + OUTPUTS // 4
HEADER = 4
BITS_WORDS = ROWS  # of a tile, as many as it has rows: an output is a bit
TILE_WORDS = BITS_WORDS + HEADER + ROWS // SEGMENT * SEGMENT_WORDS


class _Blocks(NamedTuple):
    """Sizes of a weight in (batch, contraction, output) order, and of its blocks."""

    batch: int
    k: int
    outputs: int
    piece: int

    @property
    def blocks(self) -> int:
        return -(-self.outputs // OUTPUTS)

    @property
    def count(self) -> int:
        return self.batch * self.blocks

    @property
    def tiles(self) -> int:
        return -(-self.k // ROWS)


class _Rows:
    """What the kept rows, [blocks, outputs, rows], say of values and words."""

    def __init__(self, sizes: _Blocks, kept: np.ndarray) -> None:
        self.counts = kept.sum(axis=-1)
        least, most = self.counts.min(axis=-1), self.counts.max(axis=-1)
        self.pieces = -(-most // sizes.piece)
        self.first = np.cumsum(self.pieces) - self.pieces
        zero = np.zeros_like(least)
        self.header = np.stack(
            [self.first, least // sizes.piece, self.pieces, zero], axis=-1
        )
        # Where the kept elements are in the blocks, and in the values.
        self.places = np.nonzero(kept)
        block, output, row = self.places
        self.own = (np.cumsum(kept, axis=-1) - 1)[self.places]
        piece = self.first[block] + self.own // sizes.piece
        self.stored = (piece * OUTPUTS + output) * sizes.piece + self.own % sizes.piece
        # The row behind each value; K behind the last one of an output.
        slots = int(self.pieces.max(initial=0)) * sizes.piece
        self.starts = np.full((*kept.shape[:2], slots + 1), sizes.k, np.int64)
        self.starts[..., 0] = 0
        self.starts[block, output, self.own + 1] = row + 1


def _sizes(e: Encoding, shape: Tuple[int, ...], itemsize: int) -> _Blocks:
    if not e.is_free or e.block != (1, 1):
        raise EncodingError(f"needs free elements, got {e.n}:{e.m}, block {e.block}")
    if len(shape) not in (2, 3) or e.dim not in (len(shape) - 2, len(shape) - 1):
        raise EncodingError(f"dim = {e.dim} is not legal for a weight {shape}")
    batch = shape[0] if len(shape) == 3 else 1
    k, outputs = shape[e.dim], shape[2 * len(shape) - 3 - e.dim]
    return _Blocks(batch, k, outputs, PIECE // itemsize)


def _to_blocks(sizes: _Blocks, rows: np.ndarray) -> np.ndarray:
    """[batch, K, N] as [blocks of all, outputs, K], with zeros behind N."""
    padded = np.zeros((sizes.batch, sizes.k, sizes.blocks * OUTPUTS), rows.dtype)
    padded[..., : sizes.outputs] = rows
    cut = padded.reshape(sizes.batch, sizes.k, sizes.blocks, OUTPUTS)
    cut = cut.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(cut).reshape(sizes.count, OUTPUTS, sizes.k)


def _choose_rows(sizes: _Blocks, live: np.ndarray) -> np.ndarray:
    """The rows that blocks keep: all that are live, [blocks, outputs, rows], and more
    such that a group is within 32 rows and all outputs are near each other."""
    k = sizes.k
    kept = np.zeros_like(live)
    later = np.full((*live.shape[:2], k + 1), k, np.int64)
    later[..., :k] = np.where(live, np.arange(k), k)
    later = np.minimum.accumulate(later[..., ::-1], axis=-1)[..., ::-1]
    rows = np.zeros(live.shape[:2], np.int64)
    starts = rows
    for value in range(-(-k // sizes.piece) * sizes.piece):
        upcoming = np.take_along_axis(later, rows[..., None], axis=-1)[..., 0]
        if value % sizes.piece == 0:
            goes_on = (upcoming < k).any(axis=-1, keepdims=True)
        if value % GROUP == 0:
            starts = rows
        left = GROUP - value % GROUP
        last = np.minimum(starts + GROUP_ROWS - left, k - 1)
        end = rows.min(axis=-1, keepdims=True) + WINDOW_ROWS
        last = np.minimum(last, end - 1)
        row = np.where(upcoming <= last, upcoming, np.maximum(rows, last))
        block, output = np.nonzero((row < k) & goes_on)
        kept[block, output, row[block, output]] = True
        rows = rows.copy()
        rows[block, output] = row[block, output] + 1
    return kept


def _trailers(sizes: _Blocks, rows: _Rows) -> np.ndarray:
    """The words behind the bits of each block."""
    shape = (rows.header.shape[0], sizes.tiles * (TILE_WORDS - BITS_WORDS))
    words = np.zeros(shape, np.uint32)
    if words.size == 0:
        return words
    words[:, :HEADER] = rows.header
    for segment in range(-(-(rows.starts.shape[-1] - 1) // SEGMENT)):
        starts = rows.starts[..., segment * SEGMENT]
        exists = rows.pieces * sizes.piece > segment * SEGMENT
        base = starts.min(axis=-1)
        apart = (starts - base[:, None]).astype(np.uint8)
        own = HEADER + segment * SEGMENT_WORDS
        words[exists, own] = base[exists]
        words[exists, own + 1 : own + SEGMENT_WORDS] = apart.view("<u4")[exists]
    return words


def _to_words(sizes: _Blocks, kept: np.ndarray) -> np.ndarray:
    """The bits of [blocks, outputs, rows]: words of 32 rows, the outputs of each side
    by side."""
    padded = np.zeros((*kept.shape[:2], sizes.tiles * ROWS), bool)
    padded[..., : sizes.k] = kept
    # The first row is the highest bit, so bytes and bits both go from high to low.
    words = np.packbits(padded, axis=-1).view(">u4").astype(np.uint32)
    return words.swapaxes(-1, -2).reshape(kept.shape[0], sizes.tiles * BITS_WORDS)


def _from_words(sizes: _Blocks, words: np.ndarray) -> np.ndarray:
    """Which rows of whole tiles the bits name."""
    words = words.reshape(sizes.count, sizes.tiles * BITS_WORDS // OUTPUTS, OUTPUTS)
    words = np.ascontiguousarray(words.swapaxes(-1, -2)).astype(">u4")
    return np.unpackbits(words.view(np.uint8), axis=-1).astype(bool)


def pack_free_bitmap(
    encoding: Encoding, weight: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """The bitmaps of a dense weight, which keep what is not +0.

    Returns values, one dimension of whole pieces, and bits, [batch,] blocks, tiles,
    296 words of uint32. Raises EncodingError when the encoding is not free by element.
    """
    sizes = _sizes(encoding, weight.shape, weight.dtype.itemsize)
    bits = weight.view(f"uint{weight.dtype.itemsize * 8}")
    if encoding.dim == weight.ndim - 1:
        bits = bits.swapaxes(-1, -2)
    elements = _to_blocks(sizes, bits.reshape(sizes[:3]))
    kept = _choose_rows(sizes, elements != 0)
    rows = _Rows(sizes, kept)
    values = np.zeros(rows.pieces.sum() * OUTPUTS * sizes.piece, elements.dtype)
    values[rows.stored] = elements[rows.places]
    words = [_to_words(sizes, kept), _trailers(sizes, rows)]
    stored = np.concatenate(words, axis=-1)
    shape = (*weight.shape[:-2], sizes.blocks, sizes.tiles, TILE_WORDS)
    return values.view(weight.dtype), stored.reshape(shape)


def unpack_free_bitmap(
    encoding: Encoding, values: np.ndarray, bits: np.ndarray, shape: Tuple[int, ...]
) -> np.ndarray:
    """The dense weight of that shape which `pack_free_bitmap` made bitmaps of.

    Raises EncodingError when the encoding is not free by element, a shape or type does
    not fit, rows are kept that the weight does not have or a kernel does not find, the
    words behind the bits are not what these say, or what stands for no element is not
    +0.
    """
    sizes = _sizes(encoding, shape, values.dtype.itemsize)
    legal = (*shape[:-2], sizes.blocks, sizes.tiles, TILE_WORDS)
    if bits.shape != legal or bits.dtype != np.uint32:
        raise EncodingError(
            f"bits is {bits.dtype} {bits.shape}: legal is uint32 {legal}"
        )
    words = bits.reshape(sizes.count, sizes.tiles * TILE_WORDS)
    kept = _from_words(sizes, words[:, : sizes.tiles * BITS_WORDS])
    rows = _Rows(sizes, kept)
    _check_rows(sizes, kept, rows)
    _check_trailers(sizes, rows, words[:, sizes.tiles * BITS_WORDS :])
    total = int(rows.pieces.sum())
    if values.ndim != 1 or values.size != total * OUTPUTS * sizes.piece:
        raise EncodingError(
            f"values has shape {values.shape}, but the bits name {total} pieces of "
            f"{OUTPUTS} outputs, which have {OUTPUTS * sizes.piece}"
        )
    stored = values.view(f"uint{values.dtype.itemsize * 8}")
    elements = np.zeros(kept.shape, stored.dtype)
    elements[rows.places] = stored[rows.stored]
    dense = elements.reshape(
        sizes.batch, sizes.blocks * OUTPUTS, kept.shape[-1]
    ).swapaxes(-1, -2)
    dense = dense[:, : sizes.k]
    has_none = np.ones(stored.size, bool)
    has_none[rows.stored] = False
    if (stored[has_none] != 0).any() or dense[..., sizes.outputs :].any():
        raise EncodingError(
            "an output has a value other than +0 that the weight has no place for; it "
            "is damaged or of another weight"
        )
    dense = dense[..., : sizes.outputs]
    if encoding.dim == len(shape) - 1:
        dense = dense.swapaxes(-1, -2)
    return np.ascontiguousarray(dense.reshape(shape)).view(values.dtype)


def _check_rows(sizes: _Blocks, kept: np.ndarray, rows: _Rows) -> None:
    """The weight has all rows, each output has all of its block or ends with the last
    one, and groups are within 32."""
    if kept.size == 0:
        return
    last = kept.shape[-1] - 1 - np.argmax(kept[..., ::-1], axis=-1)
    last = np.where(rows.counts > 0, last, -1)
    past = last >= sizes.k
    short = (rows.counts < (rows.pieces * sizes.piece)[:, None]) & (last < sizes.k - 1)
    block, output, row = rows.places
    begin = rows.starts[block, output, rows.own // GROUP * GROUP]
    far = row - begin >= GROUP_ROWS
    is_far = np.zeros_like(past)
    is_far[block[far], output[far]] = True
    wrong = past | short | is_far
    if not wrong.any():
        return
    b, o = place = _first(wrong)
    if past[place] or short[place]:
        row = last[place]
        why = (
            "past the end of the weight"
            if past[place]
            else "as its last one, before others of its block end"
        )
    else:
        row = row[np.argmax(far & (block == b) & (output == o))]
        why = f"more than {GROUP_ROWS - 1} rows behind its last group"
    raise EncodingError(
        f"output {b % sizes.blocks * OUTPUTS + o} (batch {b // sizes.blocks}) keeps "
        f"row {row}, {why}; the bits are damaged or of another shape"
    )


def _check_trailers(sizes: _Blocks, rows: _Rows, words: np.ndarray) -> None:
    """Outputs are near enough for the bytes that say where they are, and what is
    behind the bits is what these say."""
    apart = np.ptp(rows.starts[..., :-1:SEGMENT], axis=1)
    values = np.arange(apart.shape[-1]) * SEGMENT
    far = (apart > 255) & (values < (rows.pieces * sizes.piece)[:, None])
    differs = words != _trailers(sizes, rows)
    wrong = far.any(axis=-1) | differs.any(axis=-1)
    if not wrong.any():
        return
    b = _first(wrong)[0]
    block, batch = b % sizes.blocks, b // sizes.blocks
    if far[b].any():
        segment = int(np.argmax(far[b]))
        raise EncodingError(
            f"block {block} (batch {batch}) has outputs whose rows are "
            f"{apart[b, segment]} apart at value {segment * SEGMENT}: legal are 255; "
            "the bits are damaged"
        )
    word = int(np.argmax(differs[b]))
    raise EncodingError(
        f"word {word} behind the bits of block {block} (batch {batch}) is "
        f"{words[b, word]}, but they say {_trailers(sizes, rows)[b, word]}; they are "
        "damaged or of another shape"
    )
