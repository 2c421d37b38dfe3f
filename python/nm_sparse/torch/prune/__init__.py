# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruning of linear layers to any encoding, and what makes up for it.

Scores say what an element counts, masks which elements stay, and a least-squares fit on
calibration inputs what those become.
"""

from .least_squares import Fit, fit
from .masks import pattern_mask
from .permute import output_order
from .scores import Score, ScoreFunction, element_scores, magnitude, surgeon, wanda
from .statistics import Statistics

__all__ = [
    "Fit",
    "Score",
    "ScoreFunction",
    "Statistics",
    "element_scores",
    "fit",
    "magnitude",
    "output_order",
    "pattern_mask",
    "surgeon",
    "wanda",
]
