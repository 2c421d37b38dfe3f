# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Safetensors files and checkpoints: read, written and converted."""
