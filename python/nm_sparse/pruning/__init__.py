# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense weights and patterns: pruned to one, found to have one, and what one keeps."""
