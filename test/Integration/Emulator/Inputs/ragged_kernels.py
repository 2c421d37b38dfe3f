# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Free weights of blocks drawn from a seed, as ragged panels, shuffled or not, with
the schedules that the model chooses and some of each product.

usage: ragged_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import drawn
from families import Case, schedule

# Panels are filled up to 64 rows, so that steps are 16, 32 or 64.
WGMMA = [
    schedule("wgmma", (tokens, 64), warps, 3, rows=rows, producers=4, tma=True, **grid)
    for tokens, warps in ((64, (1, 4)), (128, (2, 4)), (192, (1, 4)), (256, (1, 4)))
    for rows in (32, 64)
    for grid in ({}, {"persistent": True})
]
MMA = [
    schedule("mma", (tokens, 32), (tokens // 32, 1), stages, rows=rows)
    for tokens in (64, 128)
    for stages, rows in ((2, 64), (4, 16))
]
RING = [
    schedule(
        "mma", (tokens, 32), (4, 1), 4, rows=64, producers=tokens // 32, persistent=grid
    )
    for tokens in (128, 256)
    for grid in (False, True)
]
SIMT = [schedule("simt", (32, 32), (1, 1), 3, rows=16)]


def choose(rng, element, panel, block_k):
    """A schedule that fits, or none: the model's."""
    fits = [""] * 4
    if block_k > 1:
        return ""
    if element == "f32":
        fits += SIMT * (panel % 32 == 0)
    else:
        fits += WGMMA * (panel % 64 == 0) + (MMA + RING) * (panel % 32 == 0)
    return rng.choice(fits)


def draw(rng):
    element = rng.choice(("f16", "f16", "bf16", "f32"))
    panel = rng.choice((32, 64, 128, 192) + (() if element == "f32" else (8, 48)))
    # Panels have parts of at most 16 rows, of blocks of 100 rows parts of 4.
    block_k = rng.choice((1, 1, 1, 3, 4, 16, 48, 100, 128))
    chosen = choose(rng, element, panel, block_k)
    # Products of warpgroups gather whole words, as do producers.
    words = rng.random() < 0.5 or "producers" in chosen or "wgmma" in chosen
    case = Case(
        element,
        panel=panel,
        block_k=block_k,
        free=True,
        shuffled=rng.random() < 0.3,
        k=rng.randint(1, 700),
        outputs=rng.randint(1, 420),
        dim=rng.randrange(2),
        x_feature_major=words,
        y_feature_major=rng.random() < 0.5,
        batch=rng.choice((0, 0, 0, 2)),
        shared_weight=rng.random() < 0.3,
        epilogue=rng.choice(("none", "relu") if element == "f32" else ("cast", "relu")),
        schedule=chosen,
    )
    return case, rng.choice((1, 3, 9, 31, 65, 100, 129, 200, 257))


def draw_with_flags(rng):
    case, tokens = draw(rng)
    chip = rng.choice(("sm_90a", "sm_90a", "sm_80"))
    if "producers" in case.schedule:
        chip = "sm_90a"
    density = rng.choice((0, 3, 25, 25, 60, 100))
    return case, tokens, f"--device emulate --chip {chip} --density {density}"


if __name__ == "__main__":
    drawn.run(__doc__, draw_with_flags)
