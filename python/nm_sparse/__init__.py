# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python side of nm_sparse: the packed format of N:M-sparse weights.

The format itself is specified in docs/Encoding.md; `encode`, `decode` and
`prune` are its reference, in plain numpy.
"""

from .bitmap import BitmapShape, bitmap_shape, pack_bitmap, unpack_bitmap
from .encoding import (
    FORMAT,
    VERSIONS,
    Encoding,
    EncodingError,
    Level,
    Packed,
    index_dtype,
    packed_shapes,
)
from .free_bitmap import pack_free_bitmap, unpack_free_bitmap
from .reference import decode, encode, prune

__version__ = "0.1.0"

__all__ = [
    "FORMAT",
    "VERSIONS",
    "BitmapShape",
    "Encoding",
    "EncodingError",
    "Level",
    "Packed",
    "bitmap_shape",
    "decode",
    "encode",
    "index_dtype",
    "pack_bitmap",
    "pack_free_bitmap",
    "packed_shapes",
    "prune",
    "unpack_bitmap",
    "unpack_free_bitmap",
]
