# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers whose weights are random constants, as files and a list for nm-run.

usage: immediate_layers.py FOLDER
"""

import dataclasses
import pathlib
import sys

import numpy

DIRECT = "{x = direct, values = direct, index = direct}"


@dataclasses.dataclass
class Layer:
    element: str
    outputs: int
    rows: int
    tokens: str  # "?" or a number
    density: float
    tile: tuple
    warps: int
    shares: int = 1
    residual: bool = False
    infinite: bool = False
    size: int = 64


LAYERS = {
    # Ragged in all dimensions, and outputs without an element.
    "ragged": Layer("f32", 70, 300, "?", 0.02, (64, 64), 2, size=45),
    "shares": Layer("f32", 70, 300, "?", 0.1, (64, 32), 8, 4, size=131),
    "one-token": Layer("f32", 33, 70, "?", 0.2, (32, 32), 4, 4, size=1),
    "more-warps-than-rows": Layer("f32", 32, 3, "40", 0.3, (32, 32), 16, 16),
    "wide": Layer("f32", 200, 64, "100", 0.05, (32, 128), 8, 8),
    "four-tokens": Layer("f32", 128, 64, "100", 0.05, (128, 32), 1),
    "two-tokens": Layer("f32", 64, 300, "70", 0.1, (128, 64), 8, 4),
    # No access may be as wide as the tokens of a lane.
    "odd-rows": Layer("f32", 64, 300, "101", 0.1, (128, 32), 4, 4),
    "f16": Layer("f16", 33, 77, "56", 0.2, (64, 64), 2, 2, residual=True),
    "f16-odd": Layer("f16", 33, 77, "?", 0.2, (64, 64), 1, size=75),
    "bf16": Layer("bf16", 96, 260, "?", 0.1, (128, 32), 4, 2, residual=True),
    "residual": Layer("f32", 70, 300, "70", 0.1, (64, 64), 4, 4, residual=True),
    "nothing": Layer("f32", 64, 64, "?", 0.0, (64, 64), 4, 2, residual=True),
    "everything": Layer("f32", 32, 40, "33", 1.0, (32, 32), 2, 2),
    "infinite": Layer("f32", 70, 300, "?", 0.02, (64, 64), 4, 2, infinite=True),
}


def write_data(layer, seed):
    """K x N in hexadecimal."""
    random = numpy.random.default_rng(seed)
    weight = random.standard_normal((layer.rows, layer.outputs))
    weight[random.random(weight.shape) >= layer.density] = 0
    weight = weight.astype(numpy.float32)
    if layer.element == "bf16":
        weight = (weight.view(numpy.uint32) >> 16).astype(numpy.uint16)
    elif layer.element == "f16":
        weight = weight.astype(numpy.float16)
    return weight.tobytes().hex().upper()


def write(layer, seed):
    x = f"tensor<{layer.rows}x{layer.tokens}x{layer.element}>"
    w = f"tensor<{layer.rows}x{layer.outputs}x{layer.element}, #w>"
    y = f"tensor<{layer.outputs}x{layer.tokens}xf32>"
    r = f"tensor<{layer.outputs}x{layer.tokens}x{layer.element}>"
    steps = -(-layer.rows // 256) * 256
    lines = [
        "#id = affine_map<(n, m) -> (n, m)>",
        "#w = #nm_sparse.encoding<free>",
        f"#s = #nm_sparse.schedule<tile = [{layer.tile[0]}, {layer.tile[1]}, {steps}], "
        f"product = immediate<warps = {layer.warps}, shares = {layer.shares}>, "
        f"transfers = {DIRECT}, pipeline = sequential>",
        f"func.func @layer(%given: {x}, %init: {y}, %b: tensor<{layer.outputs}xf32>, "
        f"%r: {r}) -> {r if layer.residual else y} {{",
        f'  %w = arith.constant dense<"0x{write_data(layer, seed)}"> : {w}',
    ]
    if layer.infinite:
        lines += [
            "  %x = linalg.generic {indexing_maps = [#id], iterator_types = "
            f'["parallel", "parallel"]}} outs(%given : {x}) {{',
            "  ^bb0(%a: f32):",
            "    %limit = arith.constant 2.4 : f32",
            "    %infinity = arith.constant 0x7F800000 : f32",
            "    %large = arith.cmpf ogt, %a, %limit : f32",
            "    %c = arith.select %large, %infinity, %a : f32",
            "    linalg.yield %c : f32",
            f"  }} -> {x}",
        ]
    given = "%x" if layer.infinite else "%given"
    lines += [
        "  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,",
        "      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]",
        f"    {{nm_sparse.schedule = #s}} ins({given}, %w : {x}, {w})",
        f"    outs(%init : {y}) -> {y}",
    ]
    if layer.residual:
        lines += [
            "  %zero = arith.constant 0.0 : f32",
            "  %z = linalg.generic {indexing_maps = [#id, affine_map<(n, m) -> (n)>,",
            '      #id], iterator_types = ["parallel", "parallel"]}',
            f"    ins(%y, %b : {y}, tensor<{layer.outputs}xf32>) outs(%r : {r}) {{",
            f"  ^bb0(%p: f32, %q: f32, %o: {layer.element}):",
            "    %1 = arith.addf %p, %q : f32",
            "    %2 = arith.extf %o : f16 to f32".replace("f16", layer.element)
            if layer.element != "f32"
            else "    %2 = arith.addf %o, %zero : f32",
            "    %3 = arith.addf %1, %2 : f32",
            "    %4 = arith.maximumf %3, %zero : f32",
        ]
        if layer.element == "f32":
            lines += ["    linalg.yield %4 : f32"]
        else:
            lines += [
                f"    %5 = arith.truncf %4 : f32 to {layer.element}",
                f"    linalg.yield %5 : {layer.element}",
            ]
        lines += [f"  }} -> {r}", f"  return %z : {r}", "}"]
    else:
        lines += [f"  return %y : {y}", "}"]
    return "\n".join(lines) + "\n"


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    calls = []
    for seed, (name, layer) in enumerate(LAYERS.items()):
        path = folder / f"{name}.mlir"
        path.write_text(write(layer, seed))
        output = f" --output {folder / name}"
        calls.append(f"{path} --device emulate --check --size m={layer.size}{output}")
    (folder / "list.txt").write_text("\n".join(calls) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
