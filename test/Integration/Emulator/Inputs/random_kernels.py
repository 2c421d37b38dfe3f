# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers drawn from a seed: element types, patterns, blocks, layouts, epilogues,
and sizes that are a multiple of nothing.

usage: random_kernels.py OUT_DIR [--count N] [--seed S] [--large] [--device D]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`. Panels of
f16 and bf16 have a legal width; all else is drawn. --large draws sizes of real
layers, for a GPU.
"""

import argparse
import pathlib
import random

import drawn
from families import Case

# Most tokens, contraction and outputs.
SMALL, LARGE = (100, 500, 200), (3000, 6000, 5000)
PANELS = {
    "f32": (1, 2, 4, 7, 8, 24, 32, 64, 100, 128),
    "f16": (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320),
}


def draw_size(rng, most):
    """Small, any, a multiple of 64, or one beside it."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randint(1, max(1, most // 8))
    if kind == 1:
        return rng.randint(1, most)
    return max(1, rng.randint(1, most // 64) * 64 + (0, 1, -1)[rng.randrange(3)])


def draw(rng, limits):
    """A layer, and its number of tokens, which may be dynamic."""
    tokens, k, outputs = (draw_size(rng, most) for most in limits)
    element = rng.choice(("f16", "bf16", "f32"))
    block_k = rng.choice((1, 1, 1, 2, 4, 8, 16, 32, 64))
    m = rng.choice((2, 4, 5, 7, 8, 10, 12, 16, 24, 32, 64))
    if block_k >= 16:
        m = rng.choice((2, 4, 8))
    epilogues = ["none", "none", "relu", "gelu", "residual"]
    case = Case(
        element,
        rng.randint(1, m),
        m,
        rng.choice(PANELS["f32" if element == "f32" else "f16"]),
        block_k=block_k,
        tokens=rng.choice((None, tokens)),
        k=max(8, k),
        outputs=max(8, outputs),
        x_feature_major=rng.random() < 0.5,
        y_feature_major=rng.random() < 0.5,
        epilogue=rng.choice(epilogues + ["cast"] * (element != "f32")),
        batch=rng.choice((0, 0, 0, 0, 0, 2)),
        shared_weight=rng.random() < 0.5,
    )
    return case, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--device", default="emulate")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    def draw_all():
        for number in range(arguments.count):
            case, tokens = draw(rng, LARGE if arguments.large else SMALL)
            name = f"{arguments.seed}-{number}"
            yield name, case, tokens, number, f"--device {arguments.device}"

    drawn.write(arguments.out, draw_all())


if __name__ == "__main__":
    main()
