# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of immediate.py, as programs, and schedules of constants in their code."""

import functools
import math
import random

MOBILENET = [
    (64, 32, 12544),
    (128, 64, 3136),
    (128, 128, 3136),
    (256, 128, 784),
    (256, 256, 784),
    (512, 256, 196),
    (512, 512, 196),
    (1024, 512, 49),
    (1024, 1024, 49),
]
RESNET = [
    (64, 64, 3136),
    (64, 256, 3136),
    (256, 64, 3136),
    (128, 256, 3136),
    (128, 512, 784),
    (512, 128, 784),
    (512, 256, 784),
    (256, 512, 784),
    (256, 1024, 196),
    (1024, 256, 196),
    (1024, 512, 196),
    (512, 1024, 196),
    (512, 2048, 49),
    (2048, 512, 49),
    (2048, 1024, 49),
]
CLASSIFIERS = [(1000, 1024, 1), (1000, 2048, 1)]
MOST_WARPS, REGISTERS, SHARED, MOST_CODE = 16, 65536, 200 << 10, 2 << 20


def all_layers():
    for outputs, rows, pixels in MOBILENET + RESNET + CLASSIFIERS:
        for density in (0.1, 0.05):
            for batch in (1, 8):
                yield outputs, rows, pixels * batch, density


def name_of(layer, label):
    outputs, rows, pixels, density = layer
    return f"{outputs}x{rows}x{pixels}-{round(100 * density)}-{label}"


@functools.lru_cache(maxsize=4)
def make_weight(outputs, rows, density):
    """K x N, with as many elements as the density says, wherever they are."""
    import numpy

    generator = numpy.random.default_rng(0)
    weight = generator.standard_normal((rows, outputs)) / math.sqrt(rows * density)
    order = generator.permutation(rows * outputs)
    weight.reshape(-1)[order[round(rows * outputs * density) :]] = 0
    return weight.astype(numpy.float32)


def program(layer, schedule="", constant=True):
    """The layer as MLIR."""
    outputs, rows, pixels, density = layer
    x, w = f"tensor<{rows}x{pixels}xf32>", f"tensor<{rows}x{outputs}xf32, #w>"
    y = f"tensor<{outputs}x{pixels}xf32>"
    data = make_weight(outputs, rows, density).tobytes().hex() if constant else ""
    given = f" {{nm_sparse.config = #nm_tile.schedule<{schedule}>}}"
    arguments = f"%x: {x}" + ("" if constant else f", %w: {w}")
    weight = f'  %w = arith.constant dense<"0x{data}"> : {w}\n' if constant else ""
    return (
        "#w = #nm_sparse.encoding<free>\n"
        f"func.func @layer({arguments}) -> {y} {{\n{weight}"
        "  %zero = arith.constant 0.0 : f32\n"
        f"  %e = tensor.empty() : {y}\n"
        f"  %i = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}\n"
        "  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,\n"
        "      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]"
        f"{given if schedule else ''}\n"
        f"    ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n"
        f"  return %y : {y}\n}}\n"
    )


def legal_variants(layer):
    """(outputs of a tile, tokens of a lane, warps of tokens, shares)"""
    outputs, rows, pixels, density = layer
    for tile in (32, 64, 128):
        for lane in (1, 2, 4):
            for warps in (1, 2, 4, 8):
                for shares in (1, 2, 4, 8, 16):
                    tokens = 32 * warps * lane
                    threads = 32 * warps * shares
                    if (
                        pixels % lane == 0
                        and 16 * rows * outputs * density * lane <= MOST_CODE
                        and tile * lane <= 128
                        and tile < 2 * max(32, outputs)
                        and warps * shares <= MOST_WARPS
                        and (warps == 1 or tokens < 2 * pixels)
                        and (shares == 1 or 4 * shares * tokens * tile <= SHARED)
                        and threads * (tile * lane + 44) <= REGISTERS
                    ):
                        yield tile, lane, warps, shares


def spell(layer, variant):
    tile, lane, warps, shares = variant
    steps = -(-layer[1] // 256) * 256
    return (
        f"tile = [{32 * warps * lane}, {tile}, {steps}], product = "
        f"immediate<warps = {warps * shares}, shares = {shares}>, transfers = "
        "{x = direct, values = direct, index = direct}, pipeline = sequential"
    )


def choose_variants(layer, count):
    """Some of those with as many warps as an H200 may need, always the same."""
    outputs, _, pixels, _ = layer

    def count_warps(variant):
        tile, lane, warps, shares = variant
        ctas = -(-pixels // (32 * warps * lane)) * -(-outputs // tile)
        return ctas * warps * shares

    variants = list(legal_variants(layer))
    good = [v for v in variants if 264 <= count_warps(v) <= 8448] or variants
    return random.Random(str(layer)).sample(good, min(count, len(good)))
