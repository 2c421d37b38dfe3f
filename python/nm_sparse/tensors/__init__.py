# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`PackedTensor`, packed on the host or by a kernel on the GPU that has the weight."""
