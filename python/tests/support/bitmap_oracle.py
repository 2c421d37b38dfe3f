# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps, version 4 of docs/Encoding.md, in numpy: to be read, and to compare the
library (lib/Packing/Bitmap) with. Works on bit patterns, like `nm_sparse.reference`.
"""

from __future__ import annotations

import math
from typing import Tuple

import numpy as np

from nm_sparse import Encoding, EncodingError, bitmap_shape, index_dtype

OUTPUTS = 32  # of a block: the lanes of a warp
PIECE = 16  # bytes that a lane reads at once


class _Sizes:
    """The sizes of both forms of a weight."""

    def __init__(self, e: Encoding, k: int, n: int, itemsize: int) -> None:
        self.shape = shape = bitmap_shape(e, k, n, itemsize)
        self.piece = PIECE // itemsize  # elements
        self.window_rows, self.kept_rows = e.m * e.block[0], e.n * e.block[0]
        self.windows = -(-k // self.window_rows)
        self.panels = -(-n // e.block[1])
        self.columns = self.panels * e.block[1]
        # Both forms, padded: whole tiles of rows, whole blocks of outputs.
        self.tile_windows = shape.tile_rows // self.window_rows
        self.padded_windows = shape.tiles * self.tile_windows
        self.outputs = shape.blocks * OUTPUTS
        self.common = min(self.columns, self.outputs)  # what both forms have

    def check(self, name: str, array: np.ndarray, *legal: int) -> Tuple[int, ...]:
        """The batch dimension, if there is one; the others must be `legal`."""
        lead = array.shape[: array.ndim - len(legal)]
        if array.shape != lead + legal or len(lead) > 1:
            raise EncodingError(
                f"{name} has shape {array.shape}: legal is {legal}, or a batch of them"
            )
        return lead


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"uint{array.dtype.itemsize * 8}")


def _first(wrong: np.ndarray) -> Tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _check_positions(e: Encoding, kept: np.ndarray) -> None:
    """`kept` [batch, windows, n, panels] must be legal."""
    below = np.concatenate([np.full_like(kept[:, :, :1], -1), kept[:, :, :-1]], axis=2)
    wrong = ((kept >= e.m) | (kept <= below)).transpose(0, 1, 3, 2)
    if wrong.any():
        b, w, p, slot = _first(wrong)
        raise EncodingError(
            f"window {w} of panel {p} (batch {b}) has position {kept[b, w, slot, p]} "
            f"in slot {slot} after {below[b, w, slot, p]}: positions must increase and "
            f"stay below m = {e.m}; the index is damaged or of another encoding"
        )


def _fail_padding(window: int, where: str, batch: int) -> None:
    raise EncodingError(
        f"window {window} of {where} (batch {batch}) holds values other than +0 past "
        "the end of the weight: the values are damaged or of another shape"
    )


def _check_padding(
    e: Encoding, values: np.ndarray, kept: np.ndarray, k: int, n: int
) -> None:
    """`values` [batch, windows * n * bk, columns] are +0 past the end of the weight."""
    (bk, bn), (batch, windows, slots, panels) = e.block, kept.shape
    blocks = values.reshape(batch, windows, slots, bk, panels, bn)
    window, row = np.ogrid[:windows, :bk]
    step = (window[:, None, :, None] * e.m + kept[:, :, :, None]) * bk
    step = step + row[:, :, None]  # [batch, windows, slots, bk, panels]
    past = (step >= k)[..., None] | (np.arange(panels * bn) >= n).reshape(panels, bn)
    wrong = ((blocks != 0) & past).any(axis=(2, 3, 5))
    if wrong.any():
        b, w, p = _first(wrong)
        _fail_padding(w, f"panel {p}", b)


def _kept_rows(e: Encoding, s: _Sizes, kept: np.ndarray) -> np.ndarray:
    """Which rows each output keeps, [batch, padded windows, rows, outputs]."""
    batch = len(kept)
    blocks = np.zeros((batch, s.windows, e.m, s.panels), bool)
    np.put_along_axis(blocks, kept, True, axis=2)
    rows = blocks.repeat(e.block[0], axis=2).repeat(e.block[1], axis=3)
    padded = np.zeros((batch, s.padded_windows, s.window_rows, s.outputs), bool)
    padded[:, :, : s.kept_rows] = True  # where the canonical form has nothing
    padded[:, : s.windows, :, : s.common] = rows[..., : s.common]
    return padded


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
    e, s = encoding, _Sizes(encoding, k, n, values.dtype.itemsize)
    lead = s.check("values", values, s.windows * s.kept_rows, s.columns)
    if lead != s.check("index", index, s.windows * e.n, s.panels):
        raise EncodingError(f"index has shape {index.shape}: legal is a batch {lead}")
    if index.dtype != (needed := index_dtype(e.m)):
        raise EncodingError(f"index is {index.dtype}: m = {e.m} needs {needed}")
    batch = math.prod(lead)
    elements = _bits(values).reshape(batch, s.windows * s.kept_rows, s.columns)
    kept = index.astype(np.int64).reshape(batch, s.windows, e.n, s.panels)
    _check_positions(e, kept)
    _check_padding(e, elements, kept, k, n)

    blocks, tiles, rows, tile_values, words = s.shape
    cut = _kept_rows(e, s, kept).reshape(batch, tiles, rows, blocks, OUTPUTS)
    padded = np.zeros((batch, blocks, tiles, OUTPUTS, words * 32), bool)
    padded[..., :rows] = cut.transpose(0, 3, 1, 4, 2)
    # The first row is the highest bit, so bytes and bits both go from high to low.
    bits = np.packbits(padded, axis=-1).view(">u4").astype(np.uint32)

    pieces = tile_values // s.piece
    stored = np.zeros((batch, tiles * tile_values, s.outputs), elements.dtype)
    stored[:, : elements.shape[1], : s.common] = elements[..., : s.common]
    stored = stored.reshape(batch, tiles, pieces, s.piece, blocks, OUTPUTS)
    stored = np.ascontiguousarray(stored.transpose(0, 4, 1, 2, 5, 3))
    return (
        stored.reshape(*lead, blocks, tiles, tile_values * OUTPUTS).view(values.dtype),
        bits.reshape(*lead, blocks, tiles, OUTPUTS * words),
    )


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
    e, s = encoding, _Sizes(encoding, k, n, values.dtype.itemsize)
    blocks, tiles, rows, tile_values, words = s.shape
    lead = s.check("values", values, blocks, tiles, tile_values * OUTPUTS)
    if lead != s.check("bits", bits, blocks, tiles, OUTPUTS * words):
        raise EncodingError(f"bits has shape {bits.shape}: legal is a batch {lead}")
    if bits.dtype != np.uint32:
        raise EncodingError(f"bits is {bits.dtype}: legal is uint32")
    batch = math.prod(lead)
    lanes = bits.astype(">u4").reshape(batch, blocks, tiles, OUTPUTS, words)
    lanes = np.unpackbits(lanes.view(np.uint8), axis=-1).astype(bool)
    kept_rows = lanes[..., :rows].transpose(0, 2, 4, 1, 3)
    kept_rows = kept_rows.reshape(batch, s.padded_windows, s.window_rows, s.outputs)
    kept = _positions(e, s, kept_rows)
    if lanes[..., rows:].any():
        b, block, t, o = _first(lanes[..., rows:].any(axis=-1))
        raise EncodingError(
            f"tile {t} of output {block * OUTPUTS + o} (batch {b}) has bits past its "
            f"{rows} rows: legal is 0; the bits are damaged or of another encoding"
        )

    pieces = tile_values // s.piece
    stored = _bits(values).reshape(batch, blocks, tiles, pieces, OUTPUTS, s.piece)
    stored = stored.transpose(0, 2, 3, 5, 1, 4)
    stored = stored.reshape(batch, tiles * tile_values, s.outputs)
    elements = np.zeros((batch, s.windows * s.kept_rows, s.columns), stored.dtype)
    elements[..., : s.common] = stored[:, : elements.shape[1], : s.common]
    stored[:, : elements.shape[1], : s.common] = 0
    if stored.any():
        b, row, o = _first(stored)
        _fail_padding(row // s.kept_rows, f"output {o}", b)
    _check_padding(e, elements, kept, k, n)
    return (
        elements.reshape(*lead, *elements.shape[1:]).view(values.dtype),
        kept.astype(index_dtype(e.m)).reshape(*lead, s.windows * e.n, s.panels),
    )


def _positions(e: Encoding, s: _Sizes, rows: np.ndarray) -> np.ndarray:
    """The positions [batch, windows, n, panels] of the kept rows, which are checked:
    [batch, padded windows, rows of a window, outputs]."""
    damaged = "the bits are damaged or of another encoding"
    counts = rows.sum(axis=2)
    if (counts != s.kept_rows).any():
        b, w, o = _first(counts != s.kept_rows)
        raise EncodingError(
            f"window {w} of output {o} (batch {b}) keeps {counts[b, w, o]} rows: legal "
            f"is {s.kept_rows}; {damaged}"
        )
    bk, bn = e.block
    # One output stands for each panel: the first, which both forms have.
    leaders = rows[:, : s.windows, :, : s.common : bn]
    blocks = leaders.reshape(len(rows), s.windows, e.m, bk, s.panels)
    torn = (blocks.any(axis=3) != blocks.all(axis=3)).any(axis=2)
    if torn.any():
        b, w, p = _first(torn)
        raise EncodingError(
            f"window {w} of output {p * bn} (batch {b}) keeps a part of a block: legal "
            f"are whole blocks of {bk} rows; {damaged}"
        )
    order = np.argsort(~blocks.all(axis=3), axis=2, kind="stable")
    kept = order[:, :, : e.n].reshape(len(rows), s.windows, e.n, s.panels)
    differs = (rows != _kept_rows(e, s, kept)).any(axis=2)
    if differs.any():
        b, w, o = _first(differs)
        if w >= s.windows or o >= s.columns:
            raise EncodingError(
                f"window {w} of output {o} (batch {b}) lies past the end of the "
                f"weight: legal is to keep its first {s.kept_rows} rows; the bits are "
                "damaged or of another shape"
            )
        raise EncodingError(
            f"window {w} of output {o} (batch {b}) keeps other rows than output "
            f"{o // bn * bn} of the same panel; {damaged}"
        )
    return kept
