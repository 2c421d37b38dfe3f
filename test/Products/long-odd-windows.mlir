// Windows of odd numbers of rows are joined to tiles of bitmaps until their values
// fill whole pieces. Where that makes a tile long, kernels read positions instead;
// where they do not, the code for a value looks through the words that it can lie
// in, and not through all of the tile.
//
// REQUIRES: nm-slow
// RUN: nm-compile %s -o %t.ptx --chip sm_80 && %python -c "lines = len(open('%t.ptx').readlines()); assert lines < 60000, lines"
// RUN: nm-run %s --entry odd --device emulate --check | FileCheck %s --check-prefixes=CANONICAL,PASS
// RUN: nm-run %s --entry joined --device emulate --check | FileCheck %s --check-prefixes=DOT,PASS
// RUN: nm-run %s --entry bytes --device emulate --check | FileCheck %s --check-prefixes=DOT,PASS
// The schedules of the other functions have their names in front.
// CANONICAL: schedule #{{.*}} product = {{mma|wgmma|panel_dot}}<
// DOT: schedule #{{.*}} product = dot<
// PASS: PASS

func.func @odd(%x: tensor<1x129xf16>, %w: tensor<129x105xf16, #nm_sparse.encoding<127:256, block = [1, 2]>>, %i: tensor<1x105xf32>) -> tensor<1x105xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<1x129xf16>, tensor<129x105xf16, #nm_sparse.encoding<127:256, block = [1, 2]>>) outs(%i : tensor<1x105xf32>) -> tensor<1x105xf32>
  return %y : tensor<1x105xf32>
}

func.func @joined(%x: tensor<2x300xf16>, %w: tensor<300x40xf16, #nm_sparse.encoding<63:128>>, %i: tensor<2x40xf32>) -> tensor<2x40xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<2x300xf16>, tensor<300x40xf16, #nm_sparse.encoding<63:128>>) outs(%i : tensor<2x40xf32>) -> tensor<2x40xf32>
  return %y : tensor<2x40xf32>
}

func.func @bytes(%x: tensor<1x500xi8>, %w: tensor<500x33xi8, #nm_sparse.encoding<5:7, block = [7, 1]>>, %i: tensor<1x33xi32>) -> tensor<1x33xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<1x500xi8>, tensor<500x33xi8, #nm_sparse.encoding<5:7, block = [7, 1]>>) outs(%i : tensor<1x33xi32>) -> tensor<1x33xi32>
  return %y : tensor<1x33xi32>
}
