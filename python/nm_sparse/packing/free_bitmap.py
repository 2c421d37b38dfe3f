# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps of free elements, version 5 of docs/Encoding.md.

`pack_free_bitmap` and `unpack_free_bitmap` go between a dense weight, any of whose
elements may be kept, and what a kernel reads of it straight from memory: blocks of 32
outputs, which keep equally many values each, zeros among them.
"""

from __future__ import annotations

import math
import re
from typing import Tuple

import numpy as np

from ..bindings import packing_library
from ..encoding import Encoding, EncodingError
from .bitmap import OUTPUTS, PIECE

ROWS = 256  # contraction steps of a tile of words
TILE_WORDS = 296  # of which the bits are the first 256
# How the library says that there are more or fewer values than the bits name.
_OF_SIZE = re.compile("different weights|values are not legal|but the bits name")


def _bits_shape(e: Encoding, shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """The shape of the bits of a weight."""
    if not e.is_free or e.block != (1, 1):
        raise EncodingError(f"needs free elements, got {e.n}:{e.m}, block {e.block}")
    if len(shape) not in (2, 3) or e.dim not in (len(shape) - 2, len(shape) - 1):
        raise EncodingError(f"dim = {e.dim} is not legal for a weight {shape}")
    k, outputs = shape[e.dim], shape[2 * len(shape) - 3 - e.dim]
    return (*shape[:-2], -(-outputs // OUTPUTS), -(-k // ROWS), TILE_WORDS)


def pack_free_bitmap(
    encoding: Encoding, weight: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """The bitmaps of a dense weight, which keep what is not +0.

    Returns values, one dimension of whole pieces, and bits, [batch,] blocks, tiles,
    296 words of uint32. Raises EncodingError when the encoding is not free by element.
    """
    bits = np.zeros(_bits_shape(encoding, weight.shape), np.uint32)
    return packing_library.pack_free_bitmap(weight, encoding, bits), bits


def unpack_free_bitmap(
    encoding: Encoding, values: np.ndarray, bits: np.ndarray, shape: Tuple[int, ...]
) -> np.ndarray:
    """The dense weight of that shape which `pack_free_bitmap` made bitmaps of.

    Raises EncodingError when the encoding is not free by element, a shape or type does
    not fit, rows are kept that the weight does not have or a kernel does not find, the
    words behind the bits are not what these say, or what stands for no element is not
    +0.
    """
    legal = _bits_shape(encoding, shape)
    if bits.shape != legal or bits.dtype != np.uint32:
        raise EncodingError(
            f"bits is {bits.dtype} {bits.shape}: legal is uint32 {legal}"
        )
    tiles = bits.shape[-2]
    blocks = bits.reshape(math.prod(bits.shape[:-2]), tiles * TILE_WORDS)
    # Behind the bits a block says how many pieces of values it has.
    pieces = blocks[:, tiles * ROWS + 2 : tiles * ROWS + 3].sum()
    own = OUTPUTS * PIECE // values.dtype.itemsize
    mismatch = EncodingError(
        f"values has shape {values.shape}, but the bits name {pieces} pieces of "
        f"{OUTPUTS} outputs, which have {own}"
    )
    if values.ndim != 1:
        raise mismatch
    try:
        return packing_library.unpack_free_bitmap(values, bits, encoding, shape)
    except EncodingError as error:
        is_of_size = _OF_SIZE.search(str(error))
        raise (mismatch if is_of_size else error) from None
