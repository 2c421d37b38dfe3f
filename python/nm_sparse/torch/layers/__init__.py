# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed layers of PyTorch: weights, operators, kernels and modules."""
