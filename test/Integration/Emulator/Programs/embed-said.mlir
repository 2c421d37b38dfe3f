// A program that takes a packed weight gets it by the pattern that it is stored by,
// and computes the same.
// RUN: nm-run %s --entry components --device emulate --size 1024 --output %t.two
// RUN: nm-run %s --entry components --device emulate --size 1024 --output %t.own --embed never | FileCheck %s --check-prefix=OWN
// RUN: cmp %t.two.0.npy %t.own.0.npy
// RUN: nm-compile %s --emit front --tokens 1024 -o - | FileCheck %s --check-prefix=TWO
// TWO: func.func @components
// TWO: nm_sparse.matmul <2:4>
// OWN-NOT: {{^}}  schedule #{{.*}} product = wgmma_sp
//
// What the program says wins over options.
// RUN: nm-compile %s --emit front --tokens 1 --embed never -o - | FileCheck %s --check-prefix=SAID
// RUN: nm-compile %s --emit front --tokens 4096 --embed always -o - | FileCheck %s --check-prefix=SAID
// SAID: func.func @said
// SAID: nm_sparse.matmul <2:4, dim = 1>
// SAID: func.func @kept
// SAID: nm_sparse.matmul <1:4, dim = 1>

#eight = #nm_sparse.encoding<2:8, block = [1, 4]>
#packed = #nm_sparse.packed<#eight, [250, 70], i8>

func.func @components(
    %x: tensor<?x250xi8>,
    %v: tensor<64x72xi8> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %init: tensor<?x70xi32>,
    %i: tensor<64x18xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}) -> tensor<?x70xi32> {
  %y = nm_sparse.matmul #eight
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x250xi8>, tensor<64x72xi8>, tensor<64x18xi8>) outs(%init : tensor<?x70xi32>) -> tensor<?x70xi32>
  return %y : tensor<?x70xi32>
}

#k = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#quarter = #nm_sparse.encoding<1:4, dim = 1>

// A schedule is for the pattern that the program asks for.
#s = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>
func.func @said(%x: tensor<?x352xf16>, %w: tensor<66x352xf16, #quarter>, %init: tensor<?x66xf32>) -> tensor<?x66xf32> {
  %y = linalg.matmul indexing_maps = [#k, #n, #y] {nm_sparse.embed = #nm_sparse.encoding<2:4>, nm_sparse.config = #s}
    ins(%x, %w : tensor<?x352xf16>, tensor<66x352xf16, #quarter>) outs(%init : tensor<?x66xf32>) -> tensor<?x66xf32>
  return %y : tensor<?x66xf32>
}

func.func @kept(%x: tensor<?x352xf16>, %w: tensor<66x352xf16, #quarter>, %init: tensor<?x66xf32>) -> tensor<?x66xf32> {
  %y = linalg.matmul indexing_maps = [#k, #n, #y] {nm_sparse.embed = #quarter}
    ins(%x, %w : tensor<?x352xf16>, tensor<66x352xf16, #quarter>) outs(%init : tensor<?x66xf32>) -> tensor<?x66xf32>
  return %y : tensor<?x66xf32>
}
