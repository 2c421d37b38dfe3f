# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with single elements, of 2:4 and other patterns, drawn from a seed.
Their kernels copy pixels from the images: by im2col tensor maps, where channels are
last and whole lines of 128 bytes, or by threads.

usage: conv_copies.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import drawn
from families import Convolution

from convolutions_text import text  # isort: skip

ELEMENTS = {"f16": 2, "bf16": 2, "f8E4M3FN": 1}
LINE_BYTES, PIECE_BYTES = 128, 16


def draw_schedule(rng, pattern, x, size):
    """Rows of a K step are whole lines; other patterns than 2:4 have the kernels that
    the model chooses, or expand their weight in registers."""
    kept, window = map(int, pattern.split(":"))
    if pattern != "2:4" and size == 1:
        return ""
    product = "wgmma_sp<warps = 4>" if pattern == "2:4" else "wgmma_expand<warps = 4>"
    tokens, lines = rng.choice((8, 16, 48, 128)), rng.choice((1, 2))
    grid = rng.choice(("flat", "persistent", "flat<split_k = 2>"))
    return (
        f"tile = [{tokens}, 64, {lines * LINE_BYTES // size * kept // window}], "
        f"product = {product}, "
        f"transfers = {{x = {x}, values = bulk, index = bulk}}, "
        f"pipeline = ring<stages = {rng.choice((2, 3))}, producers = 4>, grid = {grid}"
    )


def draw(rng):
    element, x = rng.choice(list(ELEMENTS)), rng.choice(("bulk", "copy"))
    pattern = rng.choice(("2:4", "2:4", "2:4", "1:4", "4:16"))
    size = ELEMENTS[element]
    unit = LINE_BYTES if x == "bulk" or rng.random() < 0.2 else PIECE_BYTES
    if x == "copy" and size > 1 and rng.random() < 0.3:
        unit = size  # any number of channels
    batch = rng.choice((1, 2, 3, 5, 8, 16))
    chosen = rng.random() < 0.75
    layouts = ["nhwc_hwcf", "nhwc_fhwc"]
    if size > 1:  # elements of 8 bits are not transposed on their way
        layouts += ["nhwc_fhwc", "chwb"]
    conv = Convolution(
        layout=rng.choice(layouts),
        element=element,
        encoding=f"{pattern}, block = [1, 1]",
        batch=batch if rng.random() < 0.7 else None,
        channels=unit // size * rng.choice((1, 2) if unit == LINE_BYTES else (1, 3, 5)),
        height=rng.randint(1, 12),
        width=rng.randint(1, 12),
        outputs=rng.randint(1, 80),
        epilogue=rng.choice(("none", "cast", "relu", "residual")),
        schedule=draw_schedule(rng, pattern, x, size) if chosen else "",
        **drawn.draw_window(rng),
    )
    return conv, batch


def draw_with_flags(rng):
    conv, batch = draw(rng)
    # Kernels of one pixel have no patches.
    while not conv.is_legal() or conv.kernel == (1, 1):
        conv, batch = draw(rng)
    return conv, batch, "--device emulate --chip sm_90a"


if __name__ == "__main__":
    drawn.run(__doc__, draw_with_flags, text)
