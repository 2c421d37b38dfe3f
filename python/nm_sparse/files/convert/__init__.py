# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of models whose layers are packed, made of any checkpoint."""

from .actions import Structure
from .model import convert_model
from .names import structure_by_names
from .options import Options
from .report import ConvertReport, Outcome

__all__ = [
    "ConvertReport",
    "Options",
    "Outcome",
    "Structure",
    "convert_model",
    "structure_by_names",
]
