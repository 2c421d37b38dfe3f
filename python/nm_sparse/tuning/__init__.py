# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules that are measured on a GPU, for databases that the compiler reads."""
