#!/usr/bin/env python3
"""Writes the linear layers that the speed comparison measures on a GPU.

`y = x w` with a result of the operands' type that starts from zero, as a dense
library's GEMM does, at 4096 x 4096 x 4096: one MLIR file for each element type,
sparsity and layout of x, and `list.txt` for `nm-run --batch --jobs 1`.

Usage: make_speed.py OUT_DIR
"""

import argparse
import pathlib

SPARSITIES = {"50": "16:32", "62.5": "12:32", "75": "8:32", "87.5": "4:32"}
LENGTHS = {"f32": (32,), "f16": (128,), "bf16": (128,)}
SIZE = 4096

LINEAR = """\
#w = #nm_sparse.encoding<{pattern}, block = [1, {length}]>
func.func @linear(%x: tensor<{x}x{type}>, %w: tensor<{n}x{n}x{type}, #w>)
    -> tensor<?x{n}x{type}> {{
  %zero = arith.constant 0.0 : {type}
  %token_dim = arith.constant {token_dim} : index
  %m = tensor.dim %x, %token_dim : tensor<{x}x{type}>
  %empty = tensor.empty(%m) : tensor<?x{n}x{type}>
  %init = linalg.fill ins(%zero : {type}) outs(%empty : tensor<?x{n}x{type}>)
      -> tensor<?x{n}x{type}>
  %y = linalg.matmul indexing_maps = [
        affine_map<(m, n, k) -> {xmap}>, affine_map<(m, n, k) -> (k, n)>,
        affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<{x}x{type}>, tensor<{n}x{n}x{type}, #w>)
      outs(%init : tensor<?x{n}x{type}>) -> tensor<?x{n}x{type}>
  return %y : tensor<?x{n}x{type}>
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for type_, lengths in LENGTHS.items():
        for length in lengths:
            for layout in ("feature", "token"):
                token = layout == "token"
                for sparsity, pattern in SPARSITIES.items():
                    text = LINEAR.format(
                        pattern=pattern,
                        length=length,
                        type=type_,
                        n=SIZE,
                        x=f"?x{SIZE}" if token else f"{SIZE}x?",
                        xmap="(m, k)" if token else "(k, m)",
                        token_dim=0 if token else 1,
                    )
                    name = f"{type_}_s{sparsity}_L{length}_{layout}"
                    path = out / f"{name}_{SIZE}x{SIZE}x{SIZE}_linear.mlir"
                    path.write_text(text)
                    lines.append(f"{path} --size {SIZE} --check --bench")
    (out / "list.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} layers in {out}")


if __name__ == "__main__":
    main()
