#!/usr/bin/env python3
"""Writes the configurations that the correctness sweep runs on a GPU.

One MLIR file for each combination of element type, sparsity, vector length,
layout, shape and epilogue, and `list.txt` for `nm-run --batch`.

Usage: make_configs.py OUT_DIR [--bench] [--only TEXT]
"""

import argparse
import pathlib

SPARSITIES = {"50": "16:32", "62.5": "12:32", "75": "8:32", "87.5": "4:32"}
LENGTHS = {"f32": (1, 4, 32), "f16": (32, 64, 128), "bf16": (32, 64, 128)}
SHAPES = [
    (4096, 4096, 4096),
    (256, 1024, 4096),
    (1, 4096, 4096),
    (77, 1000, 1333),
    (1024, 4096, 11008),
]  # tokens, outputs, contraction
LAYOUTS = ("token", "feature")

PLAIN = """\
#w = #nm_sparse.encoding<{pattern}, block = [1, {length}]>
func.func @f(%x: tensor<{x}x{type}>, %w: tensor<{k}x{n}x{type}, #w>,
             %init: tensor<{y}xf32>) -> tensor<{y}xf32> {{
  %y = linalg.matmul indexing_maps = [{maps}]
      ins(%x, %w : tensor<{x}x{type}>, tensor<{k}x{n}x{type}, #w>)
      outs(%init : tensor<{y}xf32>) -> tensor<{y}xf32>
  return %y : tensor<{y}xf32>
}}
"""

# y = gelu(x w + bias), exact GELU, stored in the type of the operands.
GELU = """\
#w = #nm_sparse.encoding<{pattern}, block = [1, {length}]>
func.func @f(%x: tensor<{x}x{type}>, %w: tensor<{k}x{n}x{type}, #w>,
             %bias: tensor<{n}xf32>) -> tensor<{y}x{type}> {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678118654752 : f32
  %token_dim = arith.constant {token_dim} : index
  %m = tensor.dim %x, %token_dim : tensor<{x}x{type}>
  %empty = tensor.empty(%m) : tensor<{y}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{y}xf32>)
      -> tensor<{y}xf32>
  %y = linalg.matmul indexing_maps = [{maps}]
      ins(%x, %w : tensor<{x}x{type}>, tensor<{k}x{n}x{type}, #w>)
      outs(%init : tensor<{y}xf32>) -> tensor<{y}xf32>
  %out = tensor.empty(%m) : tensor<{y}x{type}>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> ({bias_dim})>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y, %bias : tensor<{y}xf32>, tensor<{n}xf32>)
      outs(%out : tensor<{y}x{type}>) {{
  ^bb0(%a: f32, %b: f32, %o: {type}):
    %s = arith.addf %a, %b : f32
    %t = arith.mulf %s, %root : f32
    %e = math.erf %t : f32
    %u = arith.addf %e, %one : f32
    %h = arith.mulf %s, %half : f32
    %g = arith.mulf %h, %u : f32
    {cast}
    linalg.yield %c : {type}
  }} -> tensor<{y}x{type}>
  return %r : tensor<{y}x{type}>
}}
"""


def configuration(type_, sparsity, length, layout, shape, epilogue):
    m, n, k = shape
    token = layout == "token"
    xmap, ymap = ("(m, k)", "(m, n)") if token else ("(k, m)", "(n, m)")
    maps = ", ".join(
        f"affine_map<(m, n, k) -> {dims}>" for dims in (xmap, "(k, n)", ymap)
    )
    cast = (
        f"%c = arith.truncf %g : f32 to {type_}"
        if type_ != "f32"
        else "%c = arith.addf %g, %zero : f32"
    )
    text = (GELU if epilogue == "gelu" else PLAIN).format(
        pattern=SPARSITIES[sparsity],
        length=length,
        type=type_,
        k=k,
        n=n,
        x=f"?x{k}" if token else f"{k}x?",
        y=f"?x{n}" if token else f"{n}x?",
        maps=maps,
        token_dim=0 if token else 1,
        bias_dim="j" if token else "i",
        cast=cast,
    )
    name = f"{type_}_s{sparsity}_L{length}_{layout}_{m}x{n}x{k}_{epilogue}"
    return name, m, text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bench", action="store_true", help="measure as well as check")
    parser.add_argument("--only", default="", help="names that hold this text")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    flags = "--check" + (" --bench" if arguments.bench else "")
    lines = []
    for type_, lengths in LENGTHS.items():
        for sparsity in SPARSITIES:
            for length in lengths:
                for layout in LAYOUTS:
                    for shape in SHAPES:
                        for epilogue in ("plain", "gelu"):
                            name, m, text = configuration(
                                type_, sparsity, length, layout, shape, epilogue
                            )
                            if arguments.only not in name:
                                continue
                            path = arguments.out / f"{name}.mlir"
                            path.write_text(text)
                            lines.append(
                                f"{path} --size {m} --seed {len(lines)} {flags}"
                            )
    (arguments.out / "list.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} configurations in {arguments.out}")


if __name__ == "__main__":
    main()
