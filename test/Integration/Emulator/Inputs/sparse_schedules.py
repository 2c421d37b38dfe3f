# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2:4 layers on sparse tensor cores (`wgmma_sp`) with schedules drawn from a seed:
tiles, warps, stages, parts of the contraction, clusters and who has which tile, for
sizes that are a multiple of nothing.

usage: sparse_schedules.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`. What is drawn
is legal: a schedule that the compiler refuses is an error.
"""

import argparse
import pathlib
import random

import drawn
from families import Case

# Accumulators of a thread at most, its other registers at least, registers of an SM,
# and bytes of shared memory of a CTA.
ACCUMULATORS, WORKING, REGISTERS, SHARED = 192, 24, 65536, 232448
LINE_BYTES, CLUSTER_ROWS, MOST_STEP = 128, 8, 256


def is_legal(tile, warps, stages, element_bytes, transposed):
    """Whether registers and shared memory hold a tile of (tokens, outputs, rows)."""
    tokens, outputs, rows = tile
    accumulators = tokens * outputs // (warps * 32)
    registers = min(255, REGISTERS // ((warps + 4) * 32) // 8 * 8)
    if accumulators > ACCUMULATORS or accumulators + WORKING > registers:
        return False
    if element_bytes == 1 and tokens > 32 and tokens % 16:
        return False
    if transposed and rows > MOST_STEP:
        return False
    line = LINE_BYTES // element_bytes
    x = rows * -(-tokens // line) * line if transposed else tokens * rows
    values, bits = outputs * rows // 2, outputs * rows // 32
    # A kilobyte for each part that begins where tiles may.
    return stages * (x * element_bytes + values * element_bytes + bits * 4) + 8192 < (
        SHARED
    )


def draw_grid(rng, outputs, tile, transposed):
    """Text of a grid, for a weight of so many outputs."""
    tiles = -(-outputs // tile[1])
    shared = tile[2] if transposed else tile[0]
    clusters = [
        count
        for count in (2, 4, 8)
        if tiles % count == 0 and shared % (count * CLUSTER_ROWS) == 0
    ]
    grids = ["flat", "persistent", "persistent<stream_k = true>"]
    grids += [f"flat<split_k = {rng.randint(2, 4)}>"]
    grids += [f"flat<split_k = {rng.randint(2, 8)}, in_cluster = true>"]
    if clusters and rng.random() < 0.7:
        cluster = rng.choice(clusters)
        grids = [f"flat<cluster = {cluster}>", f"persistent<cluster = {cluster}>"]
    return rng.choice(grids)


def draw_tile(rng, element_bytes, transposed):
    """A legal tile, warps and stages."""
    while True:
        warps = rng.choice((4, 4, 8, 8, 12, 16))
        tokens = 8 * rng.choice((1, 2, 2, 3, 4, 4, 5, 6, 8, 9, 12, 16))
        outputs = warps * 16 * rng.choice((1, 1, 1, 2))
        rows = LINE_BYTES // element_bytes * rng.choice((1, 1, 2, 4, 8))
        stages = rng.randint(2, 5)
        tile = (tokens, outputs, rows)
        if is_legal(tile, warps, stages, element_bytes, transposed):
            return tile, warps, stages


def draw(rng):
    """A layer, and its number of tokens, which may be dynamic."""
    element = rng.choice(("f16", "bf16", "f8E4M3FN", "f8E5M2"))
    element_bytes = 1 if element.startswith("f8") else 2
    transposed = element_bytes == 2 and rng.random() < 0.4
    tile, warps, stages = draw_tile(rng, element_bytes, transposed)
    # Tiles that are not full, and more or fewer than there are SMs.
    outputs = tile[1] * rng.choice((1, 2, 2, 3, 4, 4)) - rng.choice(
        (0, 1, rng.randrange(40))
    )
    tokens = max(2, tile[0] * rng.randint(0, 3) + rng.randrange(1, tile[0] + 1))
    batch = rng.choice((0, 0, 0, 2))
    if tile[0] <= 16 and not batch and rng.random() < 0.5:
        tokens += min(600, 132 * tile[0] // max(1, outputs // tile[1]))
    outputs = max(8, outputs)
    k = rng.choice((rng.randint(4, 500), 16 * rng.randint(1, 30)))
    ahead = ", ahead = true" if rng.random() < 0.4 else ""
    grid = draw_grid(rng, outputs, tile, transposed)
    case = Case(
        element,
        2,
        4,
        1,
        tokens=rng.choice((None, tokens)),
        k=k,
        outputs=outputs,
        dim=rng.randrange(2),
        x_feature_major=transposed,
        y_feature_major=rng.random() < 0.4,
        epilogue=rng.choice(("none", "cast", "relu")) if element_bytes == 2 else "none",
        batch=batch,
        shared_weight=rng.random() < 0.5,
        schedule=(
            f"#nm_tile.schedule<tile = [{tile[0]}, {tile[1]}, {tile[2] // 2}], "
            f"product = wgmma_sp<warps = {warps}{ahead}>, "
            "transfers = {x = bulk, values = bulk, index = bulk}, "
            f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
        ),
    )
    return case, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    def draw_all():
        for number in range(arguments.count):
            case, tokens = draw(rng)
            order = " --last-first" if rng.random() < 0.3 else ""
            name = f"{arguments.seed}-{number}"
            yield name, case, tokens, number, f"--device emulate{order}"

    drawn.write(arguments.out, draw_all())


if __name__ == "__main__":
    main()
