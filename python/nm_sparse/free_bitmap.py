# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps of free elements, version 5 of docs/Encoding.md.

`pack_free_bitmap` and `unpack_free_bitmap` go between a dense weight, any of whose
elements may be kept, and what a kernel reads of it straight from memory: tiles of 256
contraction steps by 32 outputs, each of which keeps a number of values of its own.
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy as np

from .bitmap import OUTPUTS, _first
from .encoding import Encoding, EncodingError

ROWS = 256  # contraction steps of a tile
WORDS = ROWS // 32  # of 32 bits, for the rows of an output
PIECE = 4  # values that a lane reads at once
HEADER = 4  # words behind the bits of a tile


class _Tiles(NamedTuple):
    """Sizes of a weight in (batch, contraction, output) order, and of its tiles."""

    batch: int
    k: int
    outputs: int

    @property
    def shape(self) -> Tuple[int, int, int]:
        """(batch, blocks of outputs, tiles along the contraction)"""
        return self.batch, -(-self.outputs // OUTPUTS), -(-self.k // ROWS)


class _Pieces:
    """What the kept rows, [batch, blocks, tiles, outputs, rows], say of the values."""

    def __init__(self, kept: np.ndarray) -> None:
        self.counts = kept.sum(axis=-1)
        begun = -(-self.counts // PIECE)
        numbers = np.arange(ROWS // PIECE)[:, None]
        exist = begun[..., None, :] > numbers  # by tile, then piece, then output
        self.total = int(exist.sum())
        self.number = np.cumsum(exist.reshape(-1)).reshape(exist.shape) - 1
        pieces = begun.sum(axis=-1)
        first = np.cumsum(pieces.reshape(-1)).reshape(pieces.shape) - pieces
        least, most = (self.counts // PIECE).min(axis=-1), begun.max(axis=-1)
        self.header = np.stack([first, least, most, pieces], axis=-1)
        # Where the kept elements are in the tiles, and in the values.
        self.places = np.nonzero(kept)
        b, block, tile, output, _ = self.places
        own = (np.cumsum(kept, axis=-1) - 1)[self.places]
        piece = self.number[b, block, tile, own // PIECE, output]
        self.stored = piece * PIECE + own % PIECE


def _sizes(e: Encoding, shape: Tuple[int, ...]) -> _Tiles:
    if not e.is_free or e.block != (1, 1):
        raise EncodingError(f"needs free elements, got {e.n}:{e.m}, block {e.block}")
    if len(shape) not in (2, 3) or e.dim not in (len(shape) - 2, len(shape) - 1):
        raise EncodingError(f"dim = {e.dim} is not legal for a weight {shape}")
    batch = shape[0] if len(shape) == 3 else 1
    return _Tiles(batch, shape[e.dim], shape[2 * len(shape) - 3 - e.dim])


def _to_tiles(sizes: _Tiles, rows: np.ndarray) -> np.ndarray:
    """[batch, K, N] as [batch, blocks, tiles, outputs, rows], with zeros behind it."""
    batch, blocks, tiles = sizes.shape
    padded = np.zeros((batch, tiles * ROWS, blocks * OUTPUTS), rows.dtype)
    padded[:, : sizes.k, : sizes.outputs] = rows
    cut = padded.reshape(batch, tiles, ROWS, blocks, OUTPUTS)
    return np.ascontiguousarray(cut.transpose(0, 3, 1, 4, 2))


def pack_free_bitmap(
    encoding: Encoding, weight: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """The bitmaps of a dense weight, which keep what is not +0.

    Returns values, one dimension of whole pieces, and bits, [batch,] blocks, tiles,
    260 words of uint32. Raises EncodingError when the encoding is not free by element.
    """
    sizes = _sizes(encoding, weight.shape)
    bits = weight.view(f"uint{weight.dtype.itemsize * 8}")
    if encoding.dim == weight.ndim - 1:
        bits = bits.swapaxes(-1, -2)
    elements = _to_tiles(sizes, bits.reshape(sizes))
    kept = elements != 0
    pieces = _Pieces(kept)
    values = np.zeros(pieces.total * PIECE, elements.dtype)
    values[pieces.stored] = elements[pieces.places]
    # The first row is the highest bit, so bytes and bits both go from high to low.
    words = np.packbits(kept, axis=-1).view(">u4").astype(np.uint32)
    words = words.reshape(*sizes.shape, OUTPUTS * WORDS)
    stored = np.concatenate([words, pieces.header.astype(np.uint32)], axis=-1)
    lead = weight.shape[:-2]
    return values.view(weight.dtype), stored.reshape(*lead, *stored.shape[1:])


def unpack_free_bitmap(
    encoding: Encoding, values: np.ndarray, bits: np.ndarray, shape: Tuple[int, ...]
) -> np.ndarray:
    """The dense weight of that shape which `pack_free_bitmap` made bitmaps of.

    Raises EncodingError when the encoding is not free by element, a shape or type does
    not fit, a header is not what the bits say, elements past the end of the weight are
    kept, or a piece is padded with anything but +0.
    """
    sizes = _sizes(encoding, shape)
    tiles = (*sizes.shape, OUTPUTS * WORDS + HEADER)
    legal = (*shape[:-2], *tiles[1:])
    if bits.shape != legal or bits.dtype != np.uint32:
        raise EncodingError(
            f"bits is {bits.dtype} {bits.shape}: legal is uint32 {legal}"
        )
    bits = bits.reshape(tiles)
    words = bits[..., :-HEADER].reshape(*sizes.shape, OUTPUTS, WORDS).astype(">u4")
    kept = np.unpackbits(words.view(np.uint8), axis=-1).astype(bool)
    pieces = _Pieces(kept)
    _check(sizes, kept, pieces, bits[..., -HEADER:].astype(np.int64))
    if values.ndim != 1 or values.size != pieces.total * PIECE:
        raise EncodingError(
            f"values has shape {values.shape}, but the bits name {pieces.total} pieces "
            f"of {PIECE}"
        )
    stored = values.view(f"uint{values.dtype.itemsize * 8}")
    elements = np.zeros(kept.shape, stored.dtype)
    elements[pieces.places] = stored[pieces.stored]
    padding = np.ones(stored.size, bool)
    padding[pieces.stored] = False
    if (stored[padding] != 0).any():
        piece = int(np.argmax(padding & (stored != 0))) // PIECE
        raise EncodingError(
            f"piece {piece} is padded with values other than +0; they are damaged or "
            "of another weight"
        )
    dense = elements.transpose(0, 2, 4, 1, 3)
    dense = dense.reshape(sizes.batch, tiles[2] * ROWS, tiles[1] * OUTPUTS)
    dense = dense[:, : sizes.k, : sizes.outputs]
    if encoding.dim == len(shape) - 1:
        dense = dense.swapaxes(-1, -2)
    return np.ascontiguousarray(dense.reshape(shape)).view(values.dtype)


def _check(
    sizes: _Tiles, kept: np.ndarray, pieces: _Pieces, header: np.ndarray
) -> None:
    """Each tile begins where those before it end, and keeps rows and outputs that the
    weight has."""
    exists = _to_tiles(sizes, np.ones((*sizes,), bool))
    past = kept & ~exists
    differs = (header != pieces.header).any(axis=-1)
    wrong = differs | past.any(axis=(3, 4))
    if not wrong.any():
        return
    b, block, t = place = _first(wrong)
    if differs[place]:
        raise EncodingError(
            f"tile {t} of block {block} (batch {b}) has the header "
            f"{', '.join(str(word) for word in header[place])}, but its bits say "
            f"{', '.join(str(word) for word in pieces.header[place])}; they are "
            "damaged or of another shape"
        )
    o = _first(past[place])[0]
    row = int(np.flatnonzero(kept[place][o])[-1])
    raise EncodingError(
        f"tile {t} of output {block * OUTPUTS + o} (batch {b}) keeps row {row}, "
        "past the end of the weight; the bits are damaged or of another shape"
    )
