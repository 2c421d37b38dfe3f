# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of NHWC images, drawn from a seed, whose blocks are 16 channels.

usage: conv_block_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import dataclasses

import drawn
from conv_kernels import draw_with_flags
from families import fields_of, schedule  # first: it says where the next module is

from convolutions_text import text  # isort: skip

WGMMA = [
    schedule("wgmma", (tokens, 64), warps, 3, rows=64, producers=4, tma=True, **grid)
    for tokens, warps in ((64, (1, 4)), (128, (2, 4)))
    for grid in ({}, {"persistent": True})
]
MMA = [schedule("mma", (64, 32), (2, 1), stages, rows=32) for stages in (2, 4)]


def draw(rng):
    conv, batch, flags = draw_with_flags(rng)
    panel = rng.choice((32, 64, 64, 128))
    pattern = rng.choice(("1:2", "2:8", "3:5", "free"))
    chosen = [""]
    if panel % 64 == 0 and pattern != "free":
        chosen += [rng.choice(MMA)]
        if "sm_90a" in flags:
            chosen += [rng.choice(WGMMA)]
    conv = dataclasses.replace(
        conv,
        layout=rng.choice(("nhwc_hwcf", "nhwc_fhwc")),
        element=rng.choice(("f16", "bf16")),
        encoding=f"{pattern}, block = [16, {panel}]",
        channels=8 * rng.randint(1, 8),
        schedule=fields_of(rng.choice(chosen)),
    )
    return conv, batch, flags


if __name__ == "__main__":
    drawn.run(__doc__, draw, text)
