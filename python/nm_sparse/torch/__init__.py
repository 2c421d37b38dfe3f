# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse linear layers for PyTorch."""

from .spec import LinearSpec, encoding_text, parse_encoding
from .weight import PackedWeight

__all__ = ["LinearSpec", "PackedWeight", "encoding_text", "parse_encoding"]
