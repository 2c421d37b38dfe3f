# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a layer whose initial values are a splat that is added to itself so often.

usage: doubled.py COUNT
"""

import sys

TILE, WEIGHT = "tensor<64x256xf32>", "tensor<256x256xf16, #w>"

print(f"""#w = #nm_sparse.encoding<8:32, block = [1, 128]>
func.func @f(%x: tensor<64x256xf16>, %w: {WEIGHT}) -> {TILE} {{
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : {TILE}
  %v0 = linalg.fill ins(%one : f32) outs(%empty : {TILE}) -> {TILE}""")
count = int(sys.argv[1])
for i in range(count):
    print(
        f"  %v{i + 1} = linalg.add ins(%v{i}, %v{i} : {TILE}, {TILE})"
        f" outs(%empty : {TILE}) -> {TILE}"
    )
print(f"""  %y = linalg.matmul ins(%x, %w : tensor<64x256xf16>, {WEIGHT})
      outs(%v{count} : {TILE}) -> {TILE}
  return %y : {TILE}
}}""")
