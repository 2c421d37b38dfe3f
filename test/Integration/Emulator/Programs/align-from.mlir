// Rows at multiples of 16 but not of 32 bytes are read as they are up to 99
// tokens, and from their copy from 100 on; odd rows always from a copy.

// RUN: mkdir -p %t
// RUN: sed -e '/nm_tile.align_rows/d; s/%%rows/%%x/' %s > %t/layer.mlir
// RUN: nm-compile %s --tokens 128 --emit schedule -o - | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a host-memory=true tokens=128" -o %t/low.mlir
// RUN: nm-run %t/layer.mlir --device emulate --check --size m=72 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t/layer.mlir --device emulate --check --size m=104 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t/layer.mlir --device emulate --check --size m=112 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t/layer.mlir --device emulate --check --size m=75 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS

// PASS: PASS

// CHECK: %[[A:.*]] = nm_tile.align_rows alignment = 32 from 100
// CHECK-NOT: nm_tile.align_rows
// CHECK: nm_sparse.matmul {{.*}}tile = [64, 64, 64], product = wgmma{{.*}} ins(%[[A]],

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

func.func @f(%x: tensor<256x?xf16>, %w: tensor<256x128xf16, #w>) -> tensor<128x?xf16> {
  %zero = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<256x?xf16>
  %rows = nm_tile.align_rows alignment = 32 from 100 ins(%x : tensor<256x?xf16>) -> tensor<256x?xf16>
  %empty = tensor.empty(%m) : tensor<128x?xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<128x?xf16>) -> tensor<128x?xf16>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
      {nm_sparse.config = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>}
      ins(%rows, %w : tensor<256x?xf16>, tensor<256x128xf16, #w>)
      outs(%init : tensor<128x?xf16>) -> tensor<128x?xf16>
  return %y : tensor<128x?xf16>
}
