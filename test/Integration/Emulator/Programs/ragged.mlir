// Rows that are not aligned, on either side: x is copied first, and edges are
// written in parts. Numbers of tokens that end in a part of 16 bytes, of a
// fragment, and of a tile.
// RUN: nm-run %s --entry feature --device emulate --check --size 77 | FileCheck %s
// RUN: nm-run %s --entry feature --device emulate --check --size 80 | FileCheck %s
// RUN: nm-run %s --entry token --device emulate --check --size 77 | FileCheck %s
// RUN: nm-run %s --entry token --device emulate --check --size 130 | FileCheck %s
// RUN: nm-run %s --entry narrow --device emulate --check --size 77 | FileCheck %s
// RUN: nm-run %s --entry narrow --device emulate --check --size 33 \
// RUN:   --schedule "tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat" | FileCheck %s
// CHECK: result #0: {{.*}} PASS

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#v = #nm_sparse.encoding<8:16, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// The caller's x and result, both with rows of as many elements as tokens.
func.func @feature(%x: tensor<4096x?xf16>, %w: tensor<4096x256xf16, #w>,
                   %init: tensor<256x?xf16>) -> tensor<256x?xf16> {
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
      ins(%x, %w : tensor<4096x?xf16>, tensor<4096x256xf16, #w>)
      outs(%init : tensor<256x?xf16>) -> tensor<256x?xf16>
  return %y : tensor<256x?xf16>
}

// Rows of 333 elements, and a result of the program's with 200.
func.func @token(%x: tensor<?x333xbf16>, %w: tensor<333x200xbf16, #w>)
    -> tensor<?x200xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x333xbf16>
  %empty = tensor.empty(%m) : tensor<?x200xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<?x200xbf16>)
      -> tensor<?x200xbf16>
  %y = linalg.matmul
      ins(%x, %w : tensor<?x333xbf16>, tensor<333x200xbf16, #w>)
      outs(%init : tensor<?x200xbf16>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

// A result of the caller's whose rows are 333 elements.
func.func @narrow(%x: tensor<?x256xf16>, %w: tensor<256x333xf16, #v>,
                  %init: tensor<?x333xf32>) -> tensor<?x333xf32> {
  %y = linalg.matmul
      ins(%x, %w : tensor<?x256xf16>, tensor<256x333xf16, #v>)
      outs(%init : tensor<?x333xf32>) -> tensor<?x333xf32>
  return %y : tensor<?x333xf32>
}
