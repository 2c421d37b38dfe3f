# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers and their activations as MLIR text."""
