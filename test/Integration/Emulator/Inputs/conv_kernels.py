# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions drawn from a seed: layouts, patterns, kernels, strides, dilations and
padding that differ by axis and side, with schedules of the model and others.

usage: conv_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import drawn
from families import fields_of, schedule  # first: it says where the next module is

from convolutions_text import LAYOUTS, Convolution, text  # isort: skip

WGMMA = [
    schedule("wgmma", (tokens, 64), warps, 3, rows=rows, producers=4, tma=True, **grid)
    for tokens, warps in ((64, (1, 4)), (128, (2, 4)), (256, (1, 4)))
    for rows in (32, 64)
    for grid in ({}, {"persistent": True})
]
MMA = [schedule("mma", (64, 32), (2, 1), stages, rows=32) for stages in (2, 4)]
PATTERNS = ["8:32", "2:4", "4:16", "6:16", "free"]


def draw(rng):
    element = rng.choice(("f16", "f16", "f16", "bf16", "f32"))
    panel = rng.choice((1, 32, 64, 64, 128))
    pattern = rng.choice(PATTERNS)
    order = ", order = shuffled" if rng.random() < 0.15 else ""
    chosen = [""] * 3
    if element != "f32" and panel % 64 == 0:
        chosen += [rng.choice(WGMMA), rng.choice(MMA)]
    batch = rng.choice((1, 3, 8, 8, 16, 16, 24))
    layout, block = rng.choice(list(LAYOUTS)), rng.choice((1, 1, 16))
    channels = rng.randint(1, 70)
    # Blocks of neighbouring channels are gathered from images of whole words.
    if block == 16 and layout.startswith("nhwc") and rng.random() < 0.8:
        channels = 8 * rng.randint(1, 8)
    conv = Convolution(
        layout=layout,
        element=element,
        encoding=f"{pattern}, block = [{block}, {panel}]{order}",
        batch=batch if rng.random() < 0.7 else None,
        channels=channels,
        height=rng.randint(1, 12),
        width=rng.randint(1, 12),
        outputs=rng.randint(1, 150),
        epilogue=rng.choice(("none", "cast", "relu", "residual")),
        schedule=fields_of(rng.choice(chosen)),
        **drawn.draw_window(rng),
    )
    return conv, batch


def draw_with_flags(rng):
    conv, batch = draw(rng)
    while not conv.is_legal():
        conv, batch = draw(rng)
    chip = "sm_90a" if "wgmma" in conv.schedule else rng.choice(("sm_90a", "sm_80"))
    density = rng.choice((0, 3, 25, 60, 100))
    return conv, batch, f"--device emulate --chip {chip} --density {density}"


if __name__ == "__main__":
    drawn.run(__doc__, draw_with_flags, text)
