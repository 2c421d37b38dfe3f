# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a program of many layers.

usage: equal_layers.py functions COUNT    COUNT functions of one product
       equal_layers.py kinds COUNT        the same, each of another width
       equal_layers.py products COUNT     one function of COUNT equal products
"""

import sys

PRODUCT = """\
  %y{i} = linalg.matmul ins(%x, %w{i} : tensor<64x256xf16>, tensor<256x{n}xf16, #w>)
      outs(%init : tensor<64x{n}xf32>) -> tensor<64x{n}xf32>
"""


def function(name, count, n):
    weights = "".join(f", %w{i}: tensor<256x{n}xf16, #w>" for i in range(count))
    results = ", ".join([f"tensor<64x{n}xf32>"] * count)
    values = ", ".join(f"%y{i}" for i in range(count))
    body = "".join(PRODUCT.format(i=i, n=n) for i in range(count))
    return (
        f"func.func @{name}(%x: tensor<64x256xf16>{weights}) -> ({results}) {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        f"  %empty = tensor.empty() : tensor<64x{n}xf32>\n"
        f"  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x{n}xf32>)\n"
        f"      -> tensor<64x{n}xf32>\n"
        f"{body}  return {values} : {results}\n}}\n"
    )


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    print("#w = #nm_sparse.encoding<2:4, block = [1, 32]>")
    if kind == "products":
        print(function("model", count, 128))
        return
    for i in range(count):
        n = 128 * (i + 1) if kind == "kinds" else 128
        print(function(f"layer_{i}", 1, n))


if __name__ == "__main__":
    main()
