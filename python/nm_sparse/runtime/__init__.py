# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs: cached, called on arrays of a GPU, and run on the CPU."""
