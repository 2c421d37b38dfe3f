"""Writes products of many shapes and patterns, and the list that nm-run reads.

Usage: oracle.py OUT_DIR
"""

import itertools
import pathlib
import sys

CASES = []


def add(name, text, size=1, flags=""):
    CASES.append((name, text, size, flags))


def encoding(pattern, block=(1, 1), dim=0, inner=None):
    outer = f"{pattern}, block = [{block[0]}, {block[1]}]"
    if inner is None:
        return f"#nm_sparse.encoding<{outer}, dim = {dim}>"
    return f"#nm_sparse.encoding<[{outer}], [{inner}], dim = {dim}>"


def matmul(
    name,
    pattern,
    block,
    shape,
    types=("f32", "f32"),
    layout="token",
    dim=0,
    inner=None,
):
    m, n, k = shape
    operand, result = types
    token = layout == "token"
    x = f"tensor<?x{k}x{operand}>" if token else f"tensor<{k}x?x{operand}>"
    y = f"tensor<?x{n}x{result}>" if token else f"tensor<{n}x?x{result}>"
    w_dims = f"{k}x{n}" if dim == 0 else f"{n}x{k}"
    w = f"tensor<{w_dims}x{operand}, {encoding(pattern, block, dim, inner)}>"
    maps = ", ".join(
        f"affine_map<(m, n, k) -> {dims}>"
        for dims in (
            "(m, k)" if token else "(k, m)",
            "(k, n)" if dim == 0 else "(n, k)",
            "(m, n)" if token else "(n, m)",
        )
    )
    add(
        name,
        f"""\
func.func @f(%x: {x}, %w: {w}, %init: {y}) -> {y} {{
  %y = linalg.matmul indexing_maps = [{maps}]
      ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %y : {y}
}}
""",
        m,
    )


# Every pattern with every ragged shape: last windows and panels are partial.
patterns = [
    ("1:1", (1, 1)),
    ("4:4", (1, 1)),
    ("1:2", (1, 1)),
    ("2:4", (1, 1)),
    ("3:7", (1, 3)),
    ("2:4", (1, 4)),
    ("8:32", (1, 32)),
    ("16:32", (1, 128)),
    ("2:4", (2, 4)),
    ("3:5", (4, 4)),
    ("1:2", (64, 64)),
]
shapes = [(1, 1, 1), (7, 13, 17), (3, 40, 33), (5, 1, 64), (0, 8, 8)]
for (pattern, block), shape in itertools.product(patterns, shapes):
    matmul(
        f"pattern_{pattern.replace(':', 'of')}_{block[0]}x{block[1]}_"
        f"{'x'.join(map(str, shape))}",
        pattern,
        block,
        shape,
    )

# Blocks of several rows.
for (pattern, block), shape in itertools.product(
    [("1:2", (2, 1)), ("1:4", (4, 4)), ("2:5", (3, 6))], [(3, 7, 13), (4, 24, 48)]
):
    matmul(f"blocks_{pattern[0]}of{pattern[2]}_{shape[1]}", pattern, block, shape)

# Two levels: V:N:M as it is published, last windows and panels partial; inner
# blocks of several rows and outputs; other types, layouts and dimensions.
for m, v in itertools.product((5, 8, 10, 16, 20), (32, 64, 128)):
    shape = (3, v + 9, 3 * m - 2)
    matmul(f"levels_4of{m}_{v}", f"4:{m}", (1, v), shape, inner="2:4")
for block, inner in [
    ((4, 6), "3:8"),
    ((4, 6), "1:4, block = [2, 3]"),
    ((2, 4), "1:2, block = [2, 4]"),
]:
    name = "".join(c if c.isdigit() else "_" for c in inner)
    matmul(f"levels_blocks_{block[0]}_{name}", "2:5", block, (5, 20, 47), inner=inner)
for layout, dim in itertools.product(("token", "feature"), (0, 1)):
    for types in (("f16", "f16"), ("bf16", "f32")):
        matmul(
            f"levels_{layout}_{dim}_{types[0]}",
            "4:10",
            (1, 8),
            (6, 20, 33),
            types,
            layout,
            dim,
            "2:4",
        )

# Layouts, types, and which dimension is contracted.
for layout, dim in itertools.product(("token", "feature"), (0, 1)):
    for types in (
        ("f32", "f32"),
        ("f16", "f32"),
        ("f16", "f16"),
        ("bf16", "f32"),
        ("bf16", "bf16"),
    ):
        matmul(
            f"layout_{layout}_{dim}_{types[0]}_{types[1]}",
            "2:4",
            (1, 8),
            (6, 20, 30),
            types,
            layout,
            dim,
        )

# A batch, with a weight of its own for each entry.
for dim in (1, 2):
    dims = "3x10x12" if dim == 1 else "3x12x10"
    w = f"tensor<{dims}xf32, {encoding('1:4', (1, 4), dim)}>"
    w_map = "(b, k, n)" if dim == 1 else "(b, n, k)"
    add(
        f"batch_{dim}",
        f"""\
func.func @f(%x: tensor<3x?x10xf32>, %w: {w}, %init: tensor<3x?x12xf32>)
      -> tensor<3x?x12xf32> {{
  %y = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
        affine_map<(b, m, n, k) -> {w_map}>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%x, %w : tensor<3x?x10xf32>, {w}) outs(%init : tensor<3x?x12xf32>)
      -> tensor<3x?x12xf32>
  return %y : tensor<3x?x12xf32>
}}
""",
        5,
    )

# Products with one vector.
w = f"tensor<21x9xf32, {encoding('2:4')}>"
add(
    "vecmat",
    f"""\
func.func @f(%x: tensor<21xf32>, %w: {w}, %init: tensor<9xf32>) -> tensor<9xf32> {{
  %y = linalg.vecmat ins(%x, %w : tensor<21xf32>, {w}) outs(%init : tensor<9xf32>)
      -> tensor<9xf32>
  return %y : tensor<9xf32>
}}
""",
)
w = f"tensor<9x21xf32, {encoding('2:4', dim=1)}>"
add(
    "matvec",
    f"""\
func.func @f(%w: {w}, %x: tensor<21xf32>, %init: tensor<9xf32>) -> tensor<9xf32> {{
  %y = linalg.matvec ins(%w, %x : {w}, tensor<21xf32>) outs(%init : tensor<9xf32>)
      -> tensor<9xf32>
  return %y : tensor<9xf32>
}}
""",
)

# A constant weight of two levels and two windows.
w = f"tensor<6x2xf16, {encoding('2:3', (1, 2), 0, '1:2')}>"
add(
    "levels_constant",
    f"""\
func.func @f(%x: tensor<?x6xf16>, %init: tensor<?x2xf32>) -> tensor<?x2xf32> {{
  %w = arith.constant dense<[[0.0, 0.0], [5.0, 0.0], [0.0, -5.0],
                             [1.0, 0.0], [0.0, 0.0], [0.0, 3.0]]> : {w}
  %y = linalg.matmul ins(%x, %w : tensor<?x6xf16>, {w})
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}}
""",
    4,
)

# Constant weights: a window with fewer survivors than n, and one with none.
rows = [[0, 2], [1, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [-3, 0]]
w = f"tensor<9x2xf32, {encoding('2:4')}>"
add(
    "empty_windows",
    f"""\
func.func @f(%x: tensor<?x9xf32>, %init: tensor<?x2xf32>) -> tensor<?x2xf32> {{
  %w = arith.constant dense<{[[float(v) for v in row] for row in rows]}> : {w}
  %y = linalg.matmul ins(%x, %w : tensor<?x9xf32>, {w})
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}}
""",
    4,
)
add(
    "all_zero",
    f"""\
func.func @f(%x: tensor<?x9xf32>, %init: tensor<?x2xf32>) -> tensor<?x2xf32> {{
  %w = arith.constant dense<0.0> : {w}
  %y = linalg.matmul ins(%x, %w : tensor<?x9xf32>, {w})
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}}
""",
    4,
)

# A weight that is pruned and packed at run time.
for name, sparsity in [
    ("pruned_at_run_time", encoding("2:4", (1, 4))),
    ("levels_pruned_at_run_time", encoding("4:10", (1, 4), 0, "2:4")),
]:
    w = f"tensor<18x10xf32, {sparsity}>"
    add(
        name,
        f"""\
func.func @f(%x: tensor<?x18xf32>, %dense: tensor<18x10xf32>,
      %init: tensor<?x10xf32>) -> tensor<?x10xf32> {{
  %w = nm_sparse.prune {sparsity} %dense : tensor<18x10xf32> to {w}
  %y = linalg.matmul ins(%x, %w : tensor<?x18xf32>, {w})
      outs(%init : tensor<?x10xf32>) -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}}
""",
        4,
    )

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
lines = []
for seed, (name, text, size, flags) in enumerate(CASES):
    path = out / f"{name}.mlir"
    path.write_text(text)
    lines.append(f'"{path}" --device cpu --size {size} --seed {seed} --check {flags}')
(out / "list.txt").write_text("\n".join(lines) + "\n")
print(len(CASES), "cases")
