# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense weights that a kernel and the host pack: types, patterns, blocks, layouts
and sizes drawn from a seed, with every bit pattern that the rules speak of.

usage: random_packs.py OUT_DIR [--count N] [--seed S]
       random_packs.py OUT_DIR --compare

Writes one MLIR file for each weight and `list.txt` for `nm-run --batch`, which
packs each of them on the host and on the device. --compare then says which results
differ in any bit.
"""

import argparse
import itertools
import math
import pathlib
import random

# Bits, the bits of a NaN with a payload, and those of -0; i8 has neither.
ELEMENTS = {
    "f32": (32, 0x7FC00001, 0x80000000),
    "f16": (16, 0x7E01, 0x8000),
    "bf16": (16, 0x7FC1, 0x8000),
    "f8E4M3FN": (8, 0x7F, 0x80),
    "f8E5M2": (8, 0x7D, 0x80),
    "i8": (8, 0x80, 0),
}
POSITIONS = (1, 2, 3, 4, 5, 8, 10, 12, 16, 32, 33, 64)
PANELS = (1, 1, 2, 3, 4, 8, 16, 20, 32, 64, 128, 256, 300)


def draw_size(rng, unit, most):
    """Any, whole units, or a multiple of 8."""
    size = rng.choice(
        (rng.randint(1, 3 * unit + 5), unit * rng.randint(1, 3), 8 * rng.randint(1, 40))
    )
    return min(size, most)


def elementwise(result, operand, other, weight, float_type, rank, body):
    """`body` makes %bits of the integer %e and the float %f."""
    dims = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({dims}) -> ({dims})>"
    iterators = ", ".join(['"parallel"'] * rank)
    element = weight.rsplit("x", 1)[1].rstrip(">")
    bits = f"i{ELEMENTS[element][0]}"
    cast_in, cast_out, name = "", "", "%in"
    if element != "i8":
        cast_in = f"    %e = arith.bitcast %in : {element} to {bits}\n"
        cast_out = f"    %out = arith.bitcast %bits : {bits} to {element}\n"
        name = "%e"
    return (
        f"  {result} = linalg.generic {{indexing_maps = [{identity}, {identity}, "
        f"{identity}], iterator_types = [{iterators}]}}\n"
        f"    ins({operand}, {other} : {weight}, {float_type}) "
        f"outs(%empty : {weight}) {{\n"
        f"  ^bb0(%in: {element}, %f: f32, %old: {element}):\n"
        f"{cast_in}{body.replace('%e', name)}{cast_out}"
        f"    linalg.yield {'%out' if cast_out else '%bits'} : {element}\n"
        f"  }} -> {weight}\n"
    )


def bitmap_shapes(n, m, bk, k, outputs, width):
    """Extents of values and bits, as section 7 of docs/Encoding.md has them."""
    windows = 1
    while True:
        rows, kept = windows * m * bk, windows * n * bk
        words = -(-rows // 32)
        if kept * width // 8 % 16 == rows % 16 == 0 and 32 * words * 8 <= 9 * rows:
            break
        windows += 1
    extents = [-(-outputs // 32), -(-k // rows)]
    return extents + [32 * kept], extents + [32 * words]


def draw(rng):
    """A function that makes a weight with zeros, NaN and -0, and packs it."""
    element = rng.choice(list(ELEMENTS))
    width, nan, negative_zero = ELEMENTS[element]
    m = rng.choice(POSITIONS)
    n = rng.randint(1, m)
    bk = rng.choice((1, 1, 1, 2, 3, 4, 16))
    bn = rng.choice(PANELS)
    batch = rng.choice(([], [], [], [2]))
    k = draw_size(rng, m * bk, 1200)
    outputs = min(draw_size(rng, bn, 900), max(1, 200000 // k))
    is_transposed = rng.random() < 0.5
    shape = [outputs, k] if is_transposed else [k, outputs]
    windows, panels = -(-k // (m * bk)), -(-outputs // bn)

    def tensor(sizes, kind):
        return "tensor<" + "x".join([str(s) for s in batch + sizes] + [kind]) + ">"

    weight, floats = tensor(shape, element), tensor(shape, "f32")
    values = tensor([windows * n * bk, panels * bn], element)
    index = tensor([windows * n, panels], "i8")
    storage = ""
    packed, bits = bitmap_shapes(n, m, bk, k, outputs, width)
    # A kernel holds whole tiles and whole panels.
    tile_bytes = bits[-1] * math.lcm(32, bn) * width // 8
    if rng.random() < 0.5 and tile_bytes <= 32768:
        storage = "storage = #nm_sparse.bitmap<#w> "
        values, index = tensor(packed, element), tensor(bits, "i32")
    rank = len(batch) + 2
    # Pruning leaves what has the pattern; zeros become -0 afterwards.
    thin = (
        "    %magnitude = math.absf %f : f32\n"
        "    %isThin = arith.cmpf olt, %magnitude, %thin : f32\n"
        f"    %kept = arith.select %isThin, %zero, %e : i{width}\n"
        "    %isLarge = arith.cmpf ogt, %f, %two : f32\n"
        f"    %bits = arith.select %isLarge, %nan, %kept : i{width}\n"
    )
    sign = (
        f"    %isZero = arith.cmpi eq, %e, %zero : i{width}\n"
        "    %isLarge = arith.cmpf ogt, %f, %one : f32\n"
        "    %becomes = arith.andi %isZero, %isLarge : i1\n"
        f"    %bits = arith.select %becomes, %negative, %e : i{width}\n"
    )

    def signed(bits):
        return bits - (1 << width) if bits >> (width - 1) else bits

    return (
        f"#w = #nm_sparse.encoding<{n}:{m}, block = [{bk}, {bn}], "
        f"dim = {len(batch) + int(is_transposed)}>\n"
        f"func.func @pack(%x: {weight}, %y: {floats}, %z: {floats}) "
        f"-> ({values}, {index}) {{\n"
        f"  %zero = arith.constant 0 : i{width}\n"
        f"  %negative = arith.constant {signed(negative_zero)} : i{width}\n"
        f"  %nan = arith.constant {signed(nan)} : i{width}\n"
        f"  %thin = arith.constant {rng.choice((0.0, 0.5, 1.2))} : f32\n"
        "  %one = arith.constant 1.0 : f32\n"
        "  %two = arith.constant 2.0 : f32\n"
        f"  %empty = tensor.empty() : {weight}\n"
        + elementwise("%t", "%x", "%y", weight, floats, rank, thin)
        + f"  %p = nm_sparse.prune #w %t : {weight} to {weight}\n"
        + elementwise("%d", "%p", "%z", weight, floats, rank, sign)
        + f"  %v, %i = nm_sparse.pack #w {storage}%d : {weight} to {values}, {index}\n"
        f"  return %v, %i : {values}, {index}\n"
        "}\n"
    )


def write(out, count, seed):
    rng = random.Random(seed)
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        file = out / f"pack{number}.mlir"
        file.write_text(draw(rng), encoding="utf-8")
        lines += [
            f"{file} --device emulate --seed {number} --pack {where} "
            f"--output {out / f'pack{number}.{where}'}"
            for where in ("host", "device")
        ]
    (out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def compare(out):
    files = sorted(out.glob("pack*.host.*.npy"))
    for file in files:
        other = out / file.name.replace(".host.", ".device.")
        if file.read_bytes() != other.read_bytes():
            print(f"DIFFERENT: {file} and {other}")
    weights = [key for key, _ in itertools.groupby(f.name.split(".")[0] for f in files)]
    print(f"{len(weights)} weights, {len(files)} results compared")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.out)
    else:
        write(arguments.out, arguments.count, arguments.seed)


if __name__ == "__main__":
    main()
