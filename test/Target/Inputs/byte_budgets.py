# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of 8-bit weights stored as bitmaps that have budgets."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Pipelines" / "Inputs"))
from cases import Case  # noqa: E402

DIRECT = (
    "transfers = {x = direct, values = direct, index = direct}, pipeline = sequential"
)


def lanes(tile, warps, shares):
    product = f"mma_expand<warps = {warps}, shares = {shares}>"
    return f"#nm_tile.schedule<tile = {list(tile)}, product = {product}, {DIRECT}>"


def warpgroups(tile, product, stages, grid):
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, product = wgmma_expand<{product}>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


KERNELS_OF_BYTES = {
    f"{name}, bytes": Case("f8E4M3FN", n, m, 1, tokens=tokens, schedule=kept)
    for name, n, m, tokens, kept in (
        ("mma_expand", 8, 16, 8, lanes((8, 64, 256), 8, 4)),
        ("mma_expand, long windows", 5, 9, 16, lanes((16, 64, 640), 4, 2)),
        (
            "wgmma_expand, ahead",
            8,
            16,
            None,
            warpgroups((256, 128, 64), "warps = 8, ahead = true", 4, "persistent"),
        ),
        (
            "wgmma_expand, shares",
            16,
            32,
            32,
            warpgroups((32, 64, 256), "warps = 16, shares = 4", 4, "flat"),
        ),
        (
            "wgmma_expand, long windows",
            5,
            9,
            None,
            warpgroups((128, 128, 160), "warps = 8, ahead = true", 2, "flat"),
        ),
    )
}
