# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python side of nm_sparse: the packed format of N:M-sparse weights.

The format itself is specified in docs/Encoding.md; `encode` and `decode` are
its reference, in plain numpy.
"""

from .reference import (
    FORMAT,
    VERSION,
    Encoding,
    EncodingError,
    Packed,
    decode,
    encode,
    index_dtype,
    packed_shapes,
)

__version__ = "0.1.0"

__all__ = [
    "FORMAT",
    "VERSION",
    "Encoding",
    "EncodingError",
    "Packed",
    "decode",
    "encode",
    "index_dtype",
    "packed_shapes",
]
