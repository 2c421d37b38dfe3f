# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed layouts: the canonical one, shuffled outputs, bitmaps, ragged panels and
K-major values."""
