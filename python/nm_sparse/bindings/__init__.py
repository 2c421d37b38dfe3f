# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libnm_sparse.so through ctypes: how it is found, its functions, and its packing."""
