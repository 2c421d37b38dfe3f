# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of 8 bits in panels of 64 outputs and more, whose activations tensor cores
read from registers (`wgmma_rs`), with schedules drawn from a seed: tiles, warps,
stages, parts of the contraction and who has which tile, for sizes that are a multiple
of nothing.

usage: register_schedules.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`. What is drawn
is legal: a schedule that the compiler refuses is an error.
"""

import math

import drawn
from families import Case

# Accumulators of a thread at most, registers of an SM, its other registers at least,
# and bytes of shared memory of a CTA.
ACCUMULATORS, REGISTERS, WORKING, SHARED = 128, 65536, 32, 232448
ROWS, PRODUCT_TOKENS = 128, 64


def draw_tile(rng, panel):
    """Tokens and outputs, warps along both, rows of a step and stages."""
    while True:
        along = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 2))
        tokens = along[0] * PRODUCT_TOKENS * rng.choice((1, 2))
        outputs = along[1] * 64 * rng.choice((1, 1, 2, 4))
        rows, stages = ROWS * rng.choice((1, 1, 2)), rng.randint(2, 5)
        warps = 4 * along[0] * along[1]
        accumulators = tokens * outputs // (warps * 32)
        free = REGISTERS // ((warps + 4) * 32) - WORKING
        if (
            tokens % ROWS == 0
            and panel % outputs == 0
            and outputs // along[1] <= 256
            and max(accumulators, tokens // 2) <= min(ACCUMULATORS, free)
            and stages * rows * (tokens + outputs) + 20000 < SHARED
        ):
            return (tokens, outputs, rows), [4 * along[0], along[1]], stages


def draw(rng):
    """A layer, its number of tokens, which may be dynamic, and flags."""
    element = rng.choice(("f8E4M3FN", "f8E5M2"))
    panel = rng.choice((64, 64, 128, 128, 192, 256))
    block_k = rng.choice((1, 1, 1, 2, 4, 16))
    n, m = rng.choice(((1, 2), (2, 4), (4, 8), (8, 32), (5, 8), (16, 32), (3, 16)))
    (tokens, outputs, rows), warps, stages = draw_tile(rng, panel)
    # A step is whole windows, or a table says where its rows are.
    kept = n * block_k
    index = "resident" if rows % kept == 0 and rng.random() < 0.6 else "rows"
    grids = ["flat", "flat", "persistent", "persistent<stream_k = true>"]
    grids += [f"flat<split_k = {rng.randint(2, 3)}>"]
    grids += [f"flat<split_k = {rng.randint(2, 4)}, in_cluster = true>"]
    windows = math.ceil(rows * rng.uniform(0.3, 5) / kept)
    k = max(2, windows * m * block_k - rng.choice((0, rng.randrange(m * block_k))))
    case = Case(
        element,
        n,
        m,
        panel,
        block_k=block_k,
        tokens=None if rng.random() < 0.6 else rng.randint(1, 300),
        k=k,
        outputs=rng.choice((panel, rng.randint(1, 2 * panel))),
        dim=rng.randrange(2),
        x_feature_major=rng.random() < 0.5,
        y_feature_major=rng.random() < 0.4,
        batch=rng.choice((0, 0, 0, 2)),
        shared_weight=rng.random() < 0.5,
        schedule=(
            f"#nm_tile.schedule<tile = [{tokens}, {outputs}, {rows}], "
            f"product = wgmma_rs<warps = {warps}>, "
            f"transfers = {{x = gather, values = bulk, index = {index}}}, "
            f"pipeline = ring<stages = {stages}, producers = 4>, "
            f"grid = {rng.choice(grids)}>"
        ),
    )
    order = " --last-first" if rng.random() < 0.3 else ""
    return case, rng.randint(1, 400), f"--device emulate{order}"


if __name__ == "__main__":
    drawn.run(__doc__.split("\n\n")[0], draw)
