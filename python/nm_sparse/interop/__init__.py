# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of numpy, torch, cupy and DLPack: read, described to programs, given back."""
