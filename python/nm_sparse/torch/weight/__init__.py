# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights as tensors: their forms, operators, scales and shards."""
