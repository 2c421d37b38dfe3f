# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models of PyTorch: converted, loaded, advised, fused and stored for kernels."""
