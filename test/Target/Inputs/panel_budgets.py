# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels with budgets whose K steps are a number of rows: of panels that keep
different numbers of them, and of convolutions."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Pipelines" / "Inputs"))
from cases import Case, fields_of, schedule  # noqa: E402
from convolutions_text import Convolution  # noqa: E402

FEATURE = {"x_feature_major": True, "y_feature_major": True}


def wgmma(tile, rows, warps):
    return schedule(
        "wgmma", tile, warps, 4, rows=rows, producers=4, tma=True, persistent=True
    )


KERNELS_OF_PANELS = {
    **{
        f"ragged, {name}": Case(
            panel=panel, free=True, dim=1, schedule=how, **{**FEATURE, **about}
        )
        for name, panel, how, about in (
            ("wgmma", 128, wgmma((256, 128), 64, (1, 8)), {}),
            ("wgmma, relu", 128, wgmma((256, 128), 64, (1, 8)), {"epilogue": "relu"}),
            (
                "wgmma, shuffled",
                128,
                wgmma((256, 128), 64, (1, 8)),
                {"shuffled": True},
            ),
            ("wgmma, L = 64", 64, wgmma((256, 64), 64, (2, 4)), {}),
            (
                "mma, sm_80",
                64,
                schedule("mma", (128, 64), (2, 2), 3, rows=64),
                {"chip": "sm_80"},
            ),
        )
    },
    **{
        f"convolution, 3 x 3, {epilogue}": Convolution(
            encoding="8:32, block = [1, 64]",
            batch=64,
            channels=256,
            height=14,
            width=14,
            outputs=256,
            kernel=(3, 3),
            low=(1, 1),
            high=(1, 1),
            epilogue=epilogue,
            schedule=fields_of(wgmma((256, 64), 64, (2, 4))),
        )
        for epilogue in ("cast", "relu", "residual")
    },
}
