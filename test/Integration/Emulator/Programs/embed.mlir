// Weights that are stored as 2:4 though their pattern is another one: constants,
// arguments and what is packed at run time.
//
// RUN: nm-run %s --entry narrow --device emulate --check --size 300 | FileCheck %s --check-prefix=OWN
// RUN: nm-run %s --entry bytes --device emulate --check --size 300 | FileCheck %s --check-prefix=SPARSE
// RUN: nm-run %s --entry bytes --device emulate --check --size 70 --embed never | FileCheck %s --check-prefix=OWN
// RUN: nm-run %s --entry constant --device emulate --check --size 300 | FileCheck %s --check-prefix=SPARSE
// RUN: nm-run %s --entry pruned --device emulate --pack host --check --size 300 | FileCheck %s --check-prefix=SPARSE
// RUN: nm-run %s --entry pruned --device emulate --pack device --check --size 300 | FileCheck %s --check-prefix=SPARSE
// RUN: nm-run %s --entry narrow --device emulate --check --size 9 --chip sm_80 --embed always | FileCheck %s --check-prefix=OWN
// SPARSE: {{^}}  schedule #{{.*}} product = wgmma_sp
// SPARSE: relative error {{.*}}: PASS
// OWN-NOT: {{^}}  schedule #{{.*}} product = wgmma_sp
// OWN: relative error {{.*}}: PASS
//
// A 4:8 weight may be 2:4, too, but nobody knows before it is packed.
// RUN: nm-run %s --entry chance --device emulate --check --size 70 | FileCheck %s --check-prefix=OWN
// RUN: not nm-run %s --entry chance --device emulate --embed-checked --size 70 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not nm-run %s --entry packed --device emulate --pack host --embed-checked --size 70 2>&1 | FileCheck %s --check-prefix=PACK
// RUN: not nm-run %s --entry packed --device emulate --pack device --embed-checked --size 70 2>&1 | FileCheck %s --check-prefix=PACK
// ARGUMENT: weight is not 2:4: window {{[0-9]+}} of panel {{[0-9]+}} has {{[34]}} nonzero blocks, legal is at most 2; prune the weight or use a larger n
// PACK: error: pack: weight is not 2:4: window 1 of panel 0 has 4 nonzero blocks, legal is at most 2; prune the weight or use a larger n

#half = #nm_sparse.encoding<1:2>
#eight = #nm_sparse.encoding<2:8>
#chance = #nm_sparse.encoding<4:8>

func.func @narrow(%x: tensor<?x250xbf16>, %w: tensor<250x130xbf16, #half>, %init: tensor<?x130xf32>) -> tensor<?x130xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x250xbf16>, tensor<250x130xbf16, #half>) outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  return %y : tensor<?x130xf32>
}

func.func @bytes(%x: tensor<?x416xi8>, %w: tensor<416x72xi8, #eight>, %init: tensor<?x72xi32>) -> tensor<?x72xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x416xi8>, tensor<416x72xi8, #eight>) outs(%init : tensor<?x72xi32>) -> tensor<?x72xi32>
  return %y : tensor<?x72xi32>
}

// No half of a window of 8 rows keeps more than two.
func.func @constant(%x: tensor<?x16xi8>, %init: tensor<?x2xi32>) -> tensor<?x2xi32> {
  %w = arith.constant dense<[[1, 0], [0, 2], [3, 0], [0, 4], [0, -5], [6, 0], [7, -8], [0, 0],
                             [0, 9], [0, 1], [2, 0], [0, 0], [3, 0], [0, 4], [0, 0], [0, 5]]> : tensor<16x2xi8, #chance>
  %y = linalg.matmul ins(%x, %w : tensor<?x16xi8>, tensor<16x2xi8, #chance>) outs(%init : tensor<?x2xi32>) -> tensor<?x2xi32>
  return %y : tensor<?x2xi32>
}

func.func @pruned(%x: tensor<?x416xf16>, %dense: tensor<416x72xf16>, %init: tensor<?x72xf32>) -> tensor<?x72xf32> {
  %w = nm_sparse.prune #half %dense : tensor<416x72xf16> to tensor<416x72xf16, #half>
  %y = linalg.matmul ins(%x, %w : tensor<?x416xf16>, tensor<416x72xf16, #half>) outs(%init : tensor<?x72xf32>) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

func.func @chance(%x: tensor<?x416xi8>, %w: tensor<416x72xi8, #chance>, %init: tensor<?x72xi32>) -> tensor<?x72xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x416xi8>, tensor<416x72xi8, #chance>) outs(%init : tensor<?x72xi32>) -> tensor<?x72xi32>
  return %y : tensor<?x72xi32>
}

// Rows 4 to 7 of each output are not zero: 4 of 8, but not 2 of 4.
func.func @packed(%x: tensor<?x16xi8>, %init: tensor<?x2xi32>) -> tensor<?x2xi32> {
  %empty = tensor.empty() : tensor<16x2xi8>
  %dense = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]}
    outs(%empty : tensor<16x2xi8>) {
  ^bb0(%old: i8):
    %at = linalg.index 0 : index
    %four = arith.constant 4 : index
    %eight = arith.constant 8 : index
    %isLate = arith.cmpi uge, %at, %four : index
    %isEarly = arith.cmpi ult, %at, %eight : index
    %isKept = arith.andi %isLate, %isEarly : i1
    %value = arith.extui %isKept : i1 to i8
    linalg.yield %value : i8
  } -> tensor<16x2xi8>
  %w = tensor.cast %dense : tensor<16x2xi8> to tensor<16x2xi8, #chance>
  %y = linalg.matmul ins(%x, %w : tensor<?x16xi8>, tensor<16x2xi8, #chance>) outs(%init : tensor<?x2xi32>) -> tensor<?x2xi32>
  return %y : tensor<?x2xi32>
}
