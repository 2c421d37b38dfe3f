# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps, version 4 of docs/Encoding.md: the kept rows of each output as bits.

`pack_bitmap` and `unpack_bitmap` go between the canonical form of one n:m level and
the form that a kernel reads straight from memory: tiles of contraction steps by
blocks of 32 outputs.
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy as np

from ..bindings import packing_library
from ..encoding import Encoding, EncodingError, index_dtype

OUTPUTS = 32  # of a block: the lanes of a warp
PIECE = 16  # bytes that a lane reads at once
FRAGMENT_ROWS = 16  # that tensor cores multiply at once: all of them in one tile


class BitmapShape(NamedTuple):
    """Sizes of a weight that is stored as bitmaps.

    blocks:       of 32 outputs.
    tiles:        along the contraction.
    tile_rows:    contraction steps of a tile.
    tile_values:  elements that each output keeps of a tile.
    words:        of 32 bits, for the rows of a tile.
    """

    blocks: int
    tiles: int
    tile_rows: int
    tile_values: int
    words: int


def innermost_weight(encoding: Encoding, k: int, n: int) -> Tuple[Encoding, int, int]:
    """The weight that the innermost level chooses from: its encoding, what it
    contracts, and its outputs.

    Of two n:m levels that is what the outer one keeps of a weight that contracts k,
    with n outputs, in whole windows and panels; its `values` and `inner_index` are the
    values and the index of it. Of one level it is the weight itself.
    """
    if encoding.inner is None:
        return encoding, k, n
    (bk, bn), inner = encoding.block, encoding.inner
    windows = -(-k // (encoding.m * bk))
    one = Encoding(inner.n, inner.m, inner.block)
    return one, windows * encoding.n * bk, -(-n // bn) * bn


def bitmap_shape(encoding: Encoding, k: int, n: int, itemsize: int) -> BitmapShape:
    """Sizes of the bitmaps of a weight that contracts k, with n outputs, of elements
    of `itemsize` bytes.

    Raises EncodingError when the encoding is not one n:m level, and when elements
    have not 1, 2 or 4 bytes.
    """
    e = encoding
    if e.is_free or e.inner is not None:
        raise EncodingError(
            f"needs one n:m level, got {e.n}:{e.m} of {len(e.levels)} levels"
        )
    if itemsize not in (1, 2, 4):
        raise EncodingError(f"elements have {itemsize} bytes: legal is 1, 2 or 4")
    rows = values = words = 0
    while (
        rows == 0
        or values * itemsize % PIECE
        or rows % FRAGMENT_ROWS
        or 32 * words * 8 > 9 * rows
    ):
        rows, values = rows + e.m * e.block[0], values + e.n * e.block[0]
        words = -(-rows // 32)
    return BitmapShape(-(-n // OUTPUTS), -(-k // rows), rows, values, words)


def _lead(name: str, array: np.ndarray, *legal: int) -> Tuple[int, ...]:
    """The batch dimension, if there is one; the others must be `legal`."""
    lead = array.shape[: max(array.ndim - len(legal), 0)]
    if array.shape != lead + legal or len(lead) > 1:
        raise EncodingError(
            f"{name} has shape {array.shape}: legal is {legal}, or a batch of them"
        )
    return lead


def _canonical(e: Encoding, k: int, n: int) -> Tuple[Tuple[int, int], Tuple[int, int]]:
    """The shapes of the canonical `values` and `index`."""
    (bk, bn), windows = e.block, -(-k // (e.m * e.block[0]))
    panels = -(-n // bn)
    return (windows * e.n * bk, panels * bn), (windows * e.n, panels)


def pack_bitmap(
    encoding: Encoding, values: np.ndarray, index: np.ndarray, k: int, n: int
) -> Tuple[np.ndarray, np.ndarray]:
    """The bitmaps of a weight in canonical form that contracts k, with n outputs.

    values:  [batch,] W * n * bk, P * bn elements of 1, 2 or 4 bytes.
    index:   [batch,] W * n, P positions.

    Returns values, [batch,] blocks, tiles, tile_values * 32 elements, and bits,
    [batch,] blocks, tiles, 32 * words of uint32; see `bitmap_shape`. Raises
    EncodingError when the encoding has no bitmaps, a shape or type does not fit, a
    position is not legal, or padding holds anything but +0.
    """
    e, shape = encoding, bitmap_shape(encoding, k, n, values.dtype.itemsize)
    legal = _canonical(e, k, n)
    lead = _lead("values", values, *legal[0])
    if lead != _lead("index", index, *legal[1]):
        raise EncodingError(f"index has shape {index.shape}: legal is a batch {lead}")
    if index.dtype != (needed := index_dtype(e.m)):
        raise EncodingError(f"index is {index.dtype}: m = {e.m} needs {needed}")
    tiles = (*lead, shape.blocks, shape.tiles)
    stored = np.zeros((*tiles, shape.tile_values * OUTPUTS), values.dtype)
    bits = np.zeros((*tiles, OUTPUTS * shape.words), np.uint32)
    packing_library.pack_bitmap(e, (k, n), lead, (values, index, stored, bits))
    return stored, bits


def unpack_bitmap(
    encoding: Encoding, values: np.ndarray, bits: np.ndarray, k: int, n: int
) -> Tuple[np.ndarray, np.ndarray]:
    """The canonical `values` and `index` that `pack_bitmap` made bitmaps of.

    values, bits:  as `pack_bitmap` returns them.

    Raises EncodingError when the encoding has no bitmaps, a shape or type does not
    fit, or the bits are not legal: n * bk rows of each window, in whole blocks, the
    same in all outputs of a panel, and the first rows past the end of the weight,
    where values must be +0.
    """
    e, shape = encoding, bitmap_shape(encoding, k, n, values.dtype.itemsize)
    tiles = (shape.blocks, shape.tiles)
    lead = _lead("values", values, *tiles, shape.tile_values * OUTPUTS)
    if lead != _lead("bits", bits, *tiles, OUTPUTS * shape.words):
        raise EncodingError(f"bits has shape {bits.shape}: legal is a batch {lead}")
    if bits.dtype != np.uint32:
        raise EncodingError(f"bits is {bits.dtype}: legal is uint32")
    legal = _canonical(e, k, n)
    stored = np.zeros((*lead, *legal[0]), values.dtype)
    index = np.zeros((*lead, *legal[1]), index_dtype(e.m))
    packing_library.unpack_bitmap(e, (k, n), lead, (values, bits, stored, index))
    return stored, index
