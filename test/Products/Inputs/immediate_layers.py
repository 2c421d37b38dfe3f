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
    window: int = 0  # Rows of which an output keeps one; 0: free elements.
    token_major: bool = False

    @property
    def is_chosen(self):
        """The model chooses the schedule."""
        return not self.tile


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
    "pattern": Layer("f32", 64, 128, "300", 0.5, (), 0, window=8),
    "token-major": Layer("f32", 96, 128, "600", 0.1, (), 0, token_major=True),
    "infinite": Layer("f32", 70, 300, "?", 0.02, (64, 64), 4, 2, infinite=True),
}


def write_data(layer, seed):
    """K x N in hexadecimal."""
    random = numpy.random.default_rng(seed)
    weight = random.standard_normal((layer.rows, layer.outputs))
    weight[random.random(weight.shape) >= layer.density] = 0
    if layer.window:
        rows = numpy.arange(layer.rows)[:, None] % layer.window
        weight[rows != random.integers(layer.window, size=layer.outputs)] = 0
    weight = weight.astype(numpy.float32)
    if layer.element == "bf16":
        weight = (weight.view(numpy.uint32) >> 16).astype(numpy.uint16)
    elif layer.element == "f16":
        weight = weight.astype(numpy.float16)
    return weight.tobytes().hex().upper()


def write(layer, seed):
    def shape(rows, element):
        sizes = [str(rows), layer.tokens]
        return (
            f"tensor<{'x'.join(sizes[::-1] if layer.token_major else sizes)}x{element}>"
        )

    x, y = shape(layer.rows, layer.element), shape(layer.outputs, "f32")
    w = f"tensor<{layer.rows}x{layer.outputs}x{layer.element}, #w>"
    r = shape(layer.outputs, layer.element)
    pattern = f"1:{layer.window}" if layer.window else "free"
    steps = -(-layer.rows // 256) * 256
    schedule = ""
    if not layer.is_chosen:
        tile = [*layer.tile, steps]
        schedule = (
            f"{{nm_sparse.config = #nm_tile.schedule<tile = {tile}, product = "
            f"immediate<warps = {layer.warps}, shares = {layer.shares}>, "
            f"transfers = {DIRECT}, pipeline = sequential>}}"
        )
    maps = "(m, k)", "(k, n)", "(m, n)"
    if not layer.token_major:
        maps = "(k, m)", "(k, n)", "(n, m)"
    lines = [
        "#id = affine_map<(n, m) -> (n, m)>",
        f"#w = #nm_sparse.encoding<{pattern}>",
        (
            f"func.func @layer(%given: {x}, %init: {y}, "
            f"%b: tensor<{layer.outputs}xf32>, %r: {r}) -> "
            f"{r if layer.residual else y} {{"
        ),
        f'  %w = arith.constant dense<"0x{write_data(layer, seed)}"> : {w}',
    ]
    if layer.infinite:
        lines += [
            (
                "  %x = linalg.generic {indexing_maps = [#id], iterator_types = "
                f'["parallel", "parallel"]}} outs(%given : {x}) {{'
            ),
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
        "  %y = linalg.matmul indexing_maps = ["
        + ", ".join(f"affine_map<(m, n, k) -> {map_}>" for map_ in maps)
        + "]",
        f"    {schedule} ins({given}, %w : {x}, {w})",
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
        output += " --specialize-constants" if layer.is_chosen else ""
        calls.append(f"{path} --device emulate --check --size m={layer.size}{output}")
    (folder / "list.txt").write_text("\n".join(calls) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
