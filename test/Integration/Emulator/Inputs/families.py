# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of all families share: sizes, layouts, kinds of copies, and
short names for schedules."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "Pipelines" / "Inputs"))
from cases import Case, fields_of, schedule, text  # noqa: E402
from convolutions_text import Convolution  # noqa: E402

__all__ = ["Case", "Convolution", "fields_of", "schedule", "text"]

FEATURE = {"x_feature_major": True, "y_feature_major": True}
# No size is a multiple of a tile, a window or a panel, and the ring of stages
# goes round more than once.
RAGGED = {"tokens": None, "k": 300, "outputs": 200}
RAGGED_LONG = {"tokens": None, "k": 1100, "outputs": 72}
LAYOUTS = {"token": {}, "feature": FEATURE}
# How activations and positions come to the product.
COPIES = [("gather", "resident"), ("copy", "resident"), ("copy", "staged")]
BULK = "transfers = {x = bulk, values = bulk, index = bulk}"


def simt(tile=(64, 64, 1), warps=(1, 2), stages=3, split_k=1, **modes):
    return schedule("simt", tile, warps, stages, split_k, **modes)


def mma(tile=(64, 64, 2), warps=(2, 2), stages=3, split_k=1, **modes):
    return schedule("mma", tile, warps, stages, split_k, **modes)
