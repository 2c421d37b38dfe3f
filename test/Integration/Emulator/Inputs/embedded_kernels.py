# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers drawn from a seed whose weights have other patterns than 2:4, but are 2:4,
too: as such they are multiplied by `wgmma_sp`, or by what the model chooses.

usage: embedded_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import argparse
import dataclasses
import pathlib
import random

import drawn
from families import Case

# n, m and block of patterns, all of whose weights are 2:4.
PATTERNS = (
    (1, 2, 1, 1),
    (1, 4, 1, 1),
    (2, 8, 1, 1),
    (1, 3, 1, 1),
    (2, 16, 1, 1),
    (1, 2, 2, 1),
    (1, 4, 2, 8),
    (2, 4, 1, 48),
    (1, 5, 1, 7),
)


def draw_schedule(rng, element):
    """Half of the layers have the schedule of the model."""
    if rng.random() < 0.5:
        return ""
    rows = 128 if element.startswith("f8") else 64
    tokens, outputs, warps = rng.choice(((16, 64, 4), (48, 128, 8), (64, 128, 4)))
    # Kept rows: half of those of a K step.
    return (
        f"#nm_tile.schedule<tile = [{tokens}, {outputs}, {rows // 2}], "
        f"product = wgmma_sp<warps = {warps}>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        f"pipeline = ring<stages = {rng.randint(2, 4)}, producers = 4>, grid = flat>"
    )


def draw(rng, pattern):
    """A layer of that pattern, and its number of tokens."""
    n, m, block_k, panel = pattern
    element = rng.choice(("f16", "bf16", "f8E4M3FN", "f8E5M2"))
    is_byte = element.startswith("f8")
    tokens = rng.choice((1, rng.randint(2, 40), rng.randint(41, 90)))
    batch = rng.choice((0, 0, 0, 2))
    case = Case(
        element,
        n,
        m,
        panel,
        block_k=block_k,
        tokens=rng.choice((None, tokens)),
        # Rows of x at multiples of 16 bytes and not.
        k=rng.choice((rng.randint(9, 600), 16 * rng.randint(1, 30))),
        outputs=rng.randint(8, 200),
        dim=rng.randrange(2),
        x_feature_major=rng.random() < 0.4,
        y_feature_major=rng.random() < 0.4,
        epilogue="none" if is_byte else rng.choice(("none", "relu", "cast")),
        batch=batch,
        shared_weight=rng.random() < 0.5,
        schedule=draw_schedule(rng, element),
    )
    # Rows of a single token are no rows of a tensor map.
    if case.x_feature_major and case.tokens == 1:
        case = dataclasses.replace(case, schedule="")
    return case, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=36)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    def draw_all():
        for number in range(arguments.count):
            case, tokens = draw(rng, PATTERNS[number % len(PATTERNS)])
            yield number, case, tokens, number, "--device emulate --embed always"

    drawn.write(arguments.out, draw_all())


if __name__ == "__main__":
    main()
