# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout `marlin-24` of compressed-tensors: 2:4 weights of 4 or 8 bits, in an order
that one kernel for tensor cores reads. Here it is undone.

A weight [N, K] is three tensors. `weight_packed` [K / 32, 16 N / (elements of an i32)]
has the K / 2 kept elements of each output, plus half the range of the integers, in
tiles of 16 x 64. `meta` [K / 32, 2 N] of i16 has where they are: four bits for each
window of four inputs, in CUTLASS's order of such metadata. `scale_packed` [groups, N]
has one scale for 128 inputs or for all of them.
"""

from __future__ import annotations

from typing import Sequence, Tuple

import numpy as np

from ..encoding import EncodingError

PARTS = ("weight_packed", "scale_packed", "meta")
GROUP = 128  # inputs that share a scale, where not all of an output do
OUTPUTS = 64  # of a tile: outputs are decoded in multiples
_TILE = 16  # kept elements along the inputs
_INTERLEAVE = {4: (0, 2, 4, 6, 1, 3, 5, 7), 8: (0, 2, 1, 3)}


def marlin_sizes(
    weight_packed: Sequence[int], scale_packed: Sequence[int], meta: Sequence[int]
) -> Tuple[int, int, int]:
    """Outputs, inputs and bits of a weight whose parts have these shapes. Raises
    EncodingError, which begins with the name of the part that does not fit."""
    for name, shape in zip(PARTS, (weight_packed, scale_packed, meta)):
        if len(shape) != 2 or 0 in shape:
            raise EncodingError(f"{name} has shape {list(shape)}: legal is a matrix")
    groups, outputs = scale_packed
    inputs = 32 * weight_packed[0]
    words = 16 * outputs // 8, 16 * outputs // 4
    if outputs % OUTPUTS or weight_packed[1] not in words:
        raise EncodingError(
            f"weight_packed has shape {list(weight_packed)}: legal is [K / 32, 2 N] of "
            f"4 bits or [K / 32, 4 N] of 8 bits for the N = {outputs} of scale_packed, "
            f"a multiple of {OUTPUTS}"
        )
    if groups not in (1, -(-inputs // GROUP)):
        raise EncodingError(
            f"scale_packed has shape {list(scale_packed)}: legal is [1, {outputs}] or "
            f"[{-(-inputs // GROUP)}, {outputs}] for {inputs} inputs"
        )
    if tuple(meta) != (weight_packed[0], 2 * outputs):
        raise EncodingError(
            f"meta has shape {list(meta)}: legal is {[weight_packed[0], 2 * outputs]}"
        )
    return outputs, inputs, 4 if weight_packed[1] == words[0] else 8


def decode_marlin(
    weight_packed: np.ndarray,
    scale_packed: np.ndarray,
    meta: np.ndarray,
    first: int = 0,
    stop: int = -1,
) -> np.ndarray:
    """The weight in f32, outputs x inputs: integers times scales.

    first, stop:  which outputs, multiples of `OUTPUTS`; all by default.

    Raises EncodingError where the parts do not fit each other.
    """
    outputs, inputs, bits = marlin_sizes(
        weight_packed.shape, scale_packed.shape, meta.shape
    )
    stop = outputs if stop < 0 else stop
    kept = _kept(weight_packed, first, stop, bits)
    places = _places(meta, outputs, first, stop)
    scales = _scales(scale_packed, inputs)[:, first:stop].astype(np.float32)
    dense = np.zeros((stop - first, inputs // 4, 4), np.float32)
    pairs = kept.reshape(stop - first, inputs // 4, 2)
    np.put_along_axis(dense, places, pairs.astype(np.float32), axis=2)
    dense = dense.reshape(stop - first, len(scales), -1)
    dense *= scales.T[:, :, None]
    return dense.reshape(stop - first, inputs)


def _order(bits: int) -> np.ndarray:
    """Which of the 16 x 64 elements of a tile each stored one is. Storage goes through
    the lanes of a warp, and in each through rows, halves and the four lines it has."""
    lane, row, half, part = np.ix_(*map(np.arange, (32, 4, 2, 4)))
    line = 2 * (lane % 4) + part % 2 + 8 * (part // 2)
    column = 4 * half + row + 8 * (lane // 4 % 2)
    order = 16 * line + 256 * (lane // 8) + column
    groups = order.reshape(-1, len(_INTERLEAVE[bits]))
    return groups[:, _INTERLEAVE[bits]].ravel()


def _kept(packed: np.ndarray, first: int, stop: int, bits: int) -> np.ndarray:
    """The kept integers of some outputs, [outputs, K / 2]."""
    each = 32 // bits
    words = packed[:, first * 16 // each : stop * 16 // each].view(np.uint32)
    shifts = np.arange(each, dtype=np.uint32) * np.uint32(bits)
    codes = (words[:, :, None] >> shifts & np.uint32((1 << bits) - 1)).astype(np.int16)
    stored = codes.reshape(-1, OUTPUTS * _TILE)
    tiles = np.empty_like(stored)
    tiles[:, _order(bits)] = stored
    # Rows of tiles, tiles of 16 outputs, kept elements, outputs.
    tiles = tiles.reshape(len(packed), (stop - first) // _TILE, _TILE, _TILE)
    kept = tiles.transpose(1, 3, 0, 2).reshape(stop - first, -1)
    return kept - np.int16(1 << (bits - 1))


def _places(meta: np.ndarray, outputs: int, first: int, stop: int) -> np.ndarray:
    """Where in its window each of two kept elements is, [outputs, K / 4, 2]."""
    columns = meta.size // outputs  # each has the positions of four windows
    row, column = np.ix_(np.arange(first, stop), np.arange(columns))
    at = row // 64 * 64 + row % 2 * 2 + row % 8 // 4 + row % 4 // 2 * 32
    at = at + row % 64 // 8 * 4
    # In blocks of 2 x 2, the two that are off the diagonal change places.
    swap = (at % 2 == 0) & (column % 2 == 1), (at % 2 == 1) & (column % 2 == 0)
    move = swap[0].astype(np.int64) - swap[1]
    at, column = at + move, column - move
    words = meta.ravel()[(column // 2 * outputs + at) * 2 + column % 2]
    words = words.view(np.uint16)[:, :, None] >> np.arange(0, 16, 4, dtype=np.uint16)
    nibbles = words.reshape(stop - first, -1) & 15
    places = np.stack([nibbles & 3, nibbles >> 2], axis=2).astype(np.int64)
    if (places[:, :, 0] >= places[:, :, 1]).any():
        raise EncodingError("meta has positions that do not increase: it is damaged")
    return places


def _scales(packed: np.ndarray, inputs: int) -> np.ndarray:
    """[groups, outputs] in the order of the outputs."""
    groups, outputs = packed.shape
    # Only where the kept elements of an output are more than a group were they moved.
    if groups == 1 or inputs // 2 <= GROUP:
        return packed
    order = np.arange(64).reshape(8, 2, 4).transpose(0, 2, 1).ravel()
    stored = packed.reshape(groups, outputs // 64, 64)
    scales = np.empty_like(stored)
    scales[:, :, order] = stored
    return scales.reshape(groups, outputs)
