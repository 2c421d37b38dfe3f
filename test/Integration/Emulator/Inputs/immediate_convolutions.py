# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with constant weights in the code, drawn from a seed: kernels, strides,
dilations and padding that differ by axis and side, batches in front and behind.

usage: immediate_convolutions.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import dataclasses

import drawn
import numpy
from families import schedule  # noqa: F401  first: it says where the next module is

from convolutions_text import Convolution, tensor, text_with_constant  # isort: skip

DIRECT = "{x = direct, values = direct, index = direct}"


@dataclasses.dataclass
class Case:
    conv: Convolution
    density: float
    seed: int
    infinite: bool  # Some pixels are, which a mask of 0 would make NaN at a border.


def make_weight(case):
    conv = case.conv
    random = numpy.random.default_rng(case.seed)
    weight = random.standard_normal((conv.outputs, conv.channels, *conv.kernel))
    weight[random.random(weight.shape) >= case.density] = 0
    weight = weight.astype(numpy.float32)
    if conv.element == "bf16":
        weight = (weight.view(numpy.uint32) >> 16).astype(numpy.uint16)
    elif conv.element == "f16":
        weight = weight.astype(numpy.float16)
    return weight


def make_infinite(image, element):
    """Turns large pixels of %given into infinity."""
    identity = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    kinds = ", ".join(['"parallel"'] * 4)
    bits = {"f32": "0x7F800000", "f16": "0x7C00", "bf16": "0x7F80"}[element]
    return (
        f"  %x = linalg.generic {{indexing_maps = [{identity}],\n"
        f"      iterator_types = [{kinds}]}} outs(%given : {image}) {{\n"
        f"  ^bb0(%in: {element}):\n"
        f"    %limit = arith.constant 2.0 : {element}\n"
        f"    %infinity = arith.constant {bits} : {element}\n"
        f"    %large = arith.cmpf ogt, %in, %limit : {element}\n"
        f"    %chosen = arith.select %large, %infinity, %in : {element}\n"
        f"    linalg.yield %chosen : {element}\n  }} -> {image}\n"
    )


def spell(case):
    conv = case.conv
    order = "bchw" if conv.layout == "nchw_fchw" else "chwb"
    sizes = conv.sizes() | {"h": conv.height, "w": conv.width}
    image = tensor(order, sizes, conv.element)
    program = text_with_constant(conv, make_weight(case))
    if not case.infinite:
        return program
    program = program.replace(f"(%x: {image}", f"(%given: {image}")
    head, brace, rest = program.partition(" {\n")
    return head + brace + make_infinite(image, conv.element) + rest


def draw_schedule(rng, conv):
    """One of those that a lane has enough registers for."""
    shares, warps = rng.choice(((1, 1), (1, 4), (2, 2), (4, 2), (8, 1)))
    outputs = rng.choice((32, 64, 128))
    lane = rng.choice([n for n in (1, 2, 4) if n * outputs <= 128])
    rows = conv.channels * conv.kernel[0] * conv.kernel[1]
    return (
        f"tile = [{32 * warps * lane}, {outputs}, {-(-rows // 256) * 256}], product = "
        f"immediate<warps = {warps * shares}, shares = {shares}>, "
        f"transfers = {DIRECT}, pipeline = sequential"
    )


def draw(rng):
    batch = rng.choice((1, 1, 3, 8))
    conv = Convolution(
        layout=rng.choice(("nchw_fchw", "nchw_fchw", "nchw_fchw", "chwb")),
        element=rng.choice(("f32", "f32", "f16", "bf16")),
        encoding="free",
        batch=batch if rng.random() < 0.8 else None,
        channels=rng.randint(1, 40),
        height=rng.randint(1, 12),
        width=rng.randint(1, 12),
        outputs=rng.randint(1, 80),
        epilogue=rng.choice(("none", "cast", "relu", "residual")),
        **drawn.draw_window(rng),
    )
    return conv, batch


def count_instructions(conv, density):
    rows = conv.channels * conv.kernel[0] * conv.kernel[1]
    return rows * (1 + conv.outputs * density)


def draw_with_flags(rng):
    density = rng.choice((0.05, 0.1, 0.3, 1.0))
    conv, batch = draw(rng)
    # The emulator takes long to compile more.
    while not conv.is_legal() or count_instructions(conv, density) > 5000:
        conv, batch = draw(rng)
    flags = "--device emulate"
    if rng.random() < 0.7:
        conv.schedule = draw_schedule(rng, conv)
    if not conv.schedule or rng.random() < 0.7:
        flags += " --specialize-constants"
    # The reference multiplies what the weight drops, too: 0 times infinity.
    infinite = density == 1.0 and rng.random() < 0.7
    case = Case(conv, density, rng.randrange(1000), infinite)
    return case, batch, flags


if __name__ == "__main__":
    drawn.run(__doc__, draw_with_flags, spell)
