# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse linear layers for PyTorch."""

from .linear import NMLinear
from .ops import packed_linear
from .spec import LinearSpec, encoding_text, parse_encoding
from .weight import PackedWeight

__all__ = [
    "LinearSpec",
    "NMLinear",
    "PackedWeight",
    "encoding_text",
    "packed_linear",
    "parse_encoding",
]
