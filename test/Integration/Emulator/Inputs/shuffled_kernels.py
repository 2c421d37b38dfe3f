# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shuffled weights, n:m and free, drawn from a seed, with the schedules that the
model chooses and some of each product.

usage: shuffled_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import drawn
from families import Case, mma, schedule, simt

EPILOGUES = (("cast", "relu", "residual"), ("none", "relu"))
# Tiles whose outputs are rows of fragments, and whose tokens are.
WGMMA = [
    schedule("wgmma", (tokens, 64, 2), warps, 3, producers=4, tma=True, **grid)
    for tokens, warps in ((64, (1, 4)), (128, (2, 4)), (256, (1, 4)))
    for grid in ({}, {"persistent": True})
]


def choose(rng, element, panel, words):
    """A schedule that fits, or none: the model's."""
    fits = [""]
    if element == "f32":
        fits += [simt()] * (panel == 64)
    elif panel == 64:
        fits += [mma()] + WGMMA * words
    return rng.choice(fits)


def draw(rng):
    element = rng.choice(("f16", "f16", "bf16", "f32"))
    panel = rng.choice((8, 64, 64, 64, 128) if element != "f32" else (32, 64))
    free = rng.random() < 0.25
    words = rng.random() < 0.8
    n, m = rng.choice(((1, 3), (2, 4), (8, 32), (8, 32), (16, 32), (16, 32)))
    case = Case(
        element,
        n=n,
        m=m,
        panel=max(panel, 32) if free else panel,
        free=free,
        shuffled=True,
        k=2 * rng.randint(1, 300),
        outputs=rng.randint(1, 420),
        dim=rng.randrange(2),
        x_feature_major=words,
        y_feature_major=rng.random() < 0.6,
        batch=rng.choice((0, 0, 0, 2)),
        shared_weight=rng.random() < 0.3,
        epilogue=rng.choice(EPILOGUES[element == "f32"]),
        schedule="" if free or m != 32 else choose(rng, element, panel, words),
    )
    return case, rng.choice((1, 3, 9, 31, 65, 100, 129, 200, 257, 512))


def draw_with_flags(rng):
    case, tokens = draw(rng)
    density = rng.choice((0, 25, 60))
    # What is expected says whether rows along memory are scattered.
    expected = rng.choice((1, 8192))
    return case, tokens, f"--device emulate --density {density} --tokens {expected}"


if __name__ == "__main__":
    drawn.run(__doc__, draw_with_flags)
