# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruning of linear layers to any encoding, and what makes up for it.

Scores say what an element counts, masks which elements stay, and a least-squares fit on
calibration inputs what those become. `prune_` does it to a model, layer by layer.
"""

from .calibration import Calibration
from .finetune import DistillReport, distill
from .held import HeldMasks, hold_masks
from .layer import PruneConfig, prune_linear_
from .least_squares import Fit, fit
from .masks import pattern_mask
from .model_size import DenseParameter, ModelSize
from .pack import pack_
from .permute import output_order
from .report import LayerReport, PruneReport
from .scores import Score, ScoreFunction, element_scores, magnitude, surgeon, wanda
from .sequential import prune_
from .statistics import Statistics

__all__ = [
    "Calibration",
    "DenseParameter",
    "DistillReport",
    "Fit",
    "HeldMasks",
    "LayerReport",
    "ModelSize",
    "PruneConfig",
    "PruneReport",
    "Score",
    "ScoreFunction",
    "Statistics",
    "distill",
    "element_scores",
    "fit",
    "hold_masks",
    "magnitude",
    "output_order",
    "pack_",
    "pattern_mask",
    "prune_",
    "prune_linear_",
    "surgeon",
    "wanda",
]
