// nm-run draws a permutation for an argument that is read as one, and refuses what
// cannot be sure to be one: it names places in memory.
//
// RUN: nm-run %s --entry rows --device cpu --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry rows --device emulate --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry entries --device cpu --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry caller --device emulate --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry dynamic --device emulate --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry constant --device cpu --check | FileCheck %s --check-prefix=RUNS
// RUNS: PASS
//
// RUN: sed 's/\[2, 0, 1\]/[2, 0, 2]/' %s > %t.twice.mlir
// RUN: not nm-run %t.twice.mlir --entry constant --device cpu 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: nm-run: 'nm_sparse.permute' op reads a constant as a permutation that holds 2 at place 2, for the second time: legal is each number from 0 to 2 once{{$}}
// RUN: sed 's/\[2, 0, 1\]/[2, -1, 1]/' %s > %t.outside.mlir
// RUN: not nm-run %t.outside.mlir --entry constant --device emulate 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: nm-run: 'nm_sparse.permute' op reads a constant as a permutation that holds -1 at place 1, which is no place: legal is each number from 0 to 2 once{{$}}
// RUN: not nm-run %s --entry computed --device cpu 2>&1 | FileCheck %s --check-prefix=COMPUTED
// COMPUTED: nm-run: 'nm_sparse.permute' op of @computed reads tensor<64xi32> as a permutation, which the program computes: nm-run runs permutations that are constants, come from nm_sparse.pack, or are arguments with the same last dimension{{$}}

func.func @rows(%y: tensor<64x?xf16>, %p: tensor<64xi32>) -> tensor<64x?xf16> {
  %0 = nm_sparse.permute %y, %p dim = 0 : tensor<64x?xf16>, tensor<64xi32>
  return %0 : tensor<64x?xf16>
}

// One permutation for each entry of a batch, of several that the argument holds.
func.func @entries(%y: tensor<2x?x64xf32>, %p: tensor<3x64xi32>) -> tensor<2x?x64xf32> {
  %s = tensor.extract_slice %p[1, 0] [2, 64] [1, 1] : tensor<3x64xi32> to tensor<2x64xi32>
  %0 = nm_sparse.permute %y, %s dim = 2 batch = 0 : tensor<2x?x64xf32>, tensor<2x64xi32>
  return %0 : tensor<2x?x64xf32>
}

func.func private @callee(%y: tensor<64x?xf16>, %p: tensor<64xi32>) -> tensor<64x?xf16> {
  %0 = nm_sparse.permute inverse %y, %p dim = 0 : tensor<64x?xf16>, tensor<64xi32>
  return %0 : tensor<64x?xf16>
}
func.func @caller(%p: tensor<64xi32>, %y: tensor<64x?xf16>) -> tensor<64x?xf16> {
  %0 = call @callee(%y, %p) : (tensor<64x?xf16>, tensor<64xi32>) -> tensor<64x?xf16>
  return %0 : tensor<64x?xf16>
}

// The permutation has as many places as what it permutes.
func.func @dynamic(%y: tensor<?x48xf32>, %p: tensor<?xi32>) -> tensor<?x48xf32> {
  %t = tensor.cast %y : tensor<?x48xf32> to tensor<?x?xf32>
  %0 = nm_sparse.permute %t, %p dim = 1 : tensor<?x?xf32>, tensor<?xi32>
  %1 = tensor.cast %0 : tensor<?x?xf32> to tensor<?x48xf32>
  return %1 : tensor<?x48xf32>
}

func.func @constant(%y: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %p = arith.constant dense<[2, 0, 1]> : tensor<3xi32>
  %0 = nm_sparse.permute %y, %p dim = 0 : tensor<3x8xf32>, tensor<3xi32>
  return %0 : tensor<3x8xf32>
}

func.func @computed(%y: tensor<64x8xf16>, %p: tensor<64xi32>) -> tensor<64x8xf16> {
  %e = tensor.empty() : tensor<64xi32>
  %q = linalg.add ins(%p, %p : tensor<64xi32>, tensor<64xi32>) outs(%e : tensor<64xi32>) -> tensor<64xi32>
  %0 = nm_sparse.permute %y, %q dim = 0 : tensor<64x8xf16>, tensor<64xi32>
  return %0 : tensor<64x8xf16>
}
