// Weights that come dense and are packed by a kernel, before a product and alone;
// those that break their pattern are refused as the host refuses them.
//
// RUN: nm-run %s --entry layer --device emulate --pack device --check --size m=20 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry element_wise --device emulate --pack device --check --size m=20 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry element_wise --device emulate --pack host --check --size m=2 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry large_blocks --device emulate --pack device --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry experts --device emulate --pack device --check | FileCheck %s --check-prefix=PASSED
// PASSED: emulated {{[1-9]}}
// PASSED: relative error {{.*}}: PASS
// PASSED-NOT: FAIL
//
// RUN: not nm-run %s --entry first --device emulate --pack device 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not nm-run %s --entry first --device emulate --pack device --last-first 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not nm-run %s --entry first --device emulate --pack host 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: pack: weight is not 2:4: window 0 of panel 0 has 4 nonzero blocks, legal is at most 2; prune the weight or use a larger n
//
// RUN: not nm-run %s --entry late --device emulate --pack device 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not nm-run %s --entry late --device emulate --pack device --last-first 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not nm-run %s --entry late --device emulate --pack host 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: pack: weight is not 1:3: window 7 of panel 4 of batch 1 has 2 nonzero blocks, legal is at most 1

#w = #nm_sparse.encoding<4:16, block = [1, 64]>
#element = #nm_sparse.encoding<8:16, dim = 1>
#large = #nm_sparse.encoding<3:8, block = [100, 80]>
#expert = #nm_sparse.encoding<1:3, block = [2, 8], dim = 2>
#two = #nm_sparse.encoding<2:4, block = [1, 2]>
#id = affine_map<(b, n, k) -> (b, n, k)>

func.func @layer(%x: tensor<?x200xf16>, %dense: tensor<200x100xf16>, %init: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %w = nm_sparse.prune #w %dense : tensor<200x100xf16> to tensor<200x100xf16, #w>
  %y = linalg.matmul ins(%x, %w : tensor<?x200xf16>, tensor<200x100xf16, #w>)
    outs(%init : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}

// A product of warpgroups expands bitmaps.
func.func @element_wise(%x: tensor<?x200xf16>, %dense: tensor<100x200xf16>, %init: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %w = nm_sparse.prune #element %dense : tensor<100x200xf16> to tensor<100x200xf16, #element>
  %y = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x200xf16>, tensor<100x200xf16, #element>)
    outs(%init : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %y : tensor<?x100xf32>
}

// A window of a panel does not fit into shared memory.
func.func @large_blocks(%dense: tensor<810x90xf16>) -> (tensor<600x160xf16>, tensor<6x2xi8>) {
  %w = nm_sparse.prune #large %dense : tensor<810x90xf16> to tensor<810x90xf16>
  %v, %i = nm_sparse.pack #large %w : tensor<810x90xf16> to tensor<600x160xf16>, tensor<6x2xi8>
  return %v, %i : tensor<600x160xf16>, tensor<6x2xi8>
}

func.func @experts(%dense: tensor<3x40x64xf32>) -> (tensor<3x22x40xf32>, tensor<3x11x5xi8>) {
  %w = nm_sparse.prune #expert %dense : tensor<3x40x64xf32> to tensor<3x40x64xf32>
  %v, %i = nm_sparse.pack #expert %w : tensor<3x40x64xf32> to tensor<3x22x40xf32>, tensor<3x11x5xi8>
  return %v, %i : tensor<3x22x40xf32>, tensor<3x11x5xi8>
}

func.func @first(%dense: tensor<70x22xf16>) -> (tensor<36x22xf16>, tensor<36x11xi8>) {
  %v, %i = nm_sparse.pack #two %dense : tensor<70x22xf16> to tensor<36x22xf16>, tensor<36x11xi8>
  return %v, %i : tensor<36x22xf16>, tensor<36x11xi8>
}

// From batch 1, output 35 and row 44 on no element is zero: window 7 has the rows
// 42 to 47, and panel 4 the outputs 32 to 39.
func.func @late(%dense: tensor<3x40x64xf32>) -> (tensor<3x22x40xf32>, tensor<3x11x5xi8>) {
  %c1 = arith.constant 1 : index
  %c35 = arith.constant 35 : index
  %c44 = arith.constant 44 : index
  %w = nm_sparse.prune #expert %dense : tensor<3x40x64xf32> to tensor<3x40x64xf32>
  %broken = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%dense : tensor<3x40x64xf32>) outs(%w : tensor<3x40x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %b = linalg.index 0 : index
    %n = linalg.index 1 : index
    %k = linalg.index 2 : index
    %isB = arith.cmpi sge, %b, %c1 : index
    %isN = arith.cmpi sge, %n, %c35 : index
    %isK = arith.cmpi sge, %k, %c44 : index
    %isBN = arith.andi %isB, %isN : i1
    %all = arith.andi %isBN, %isK : i1
    %r = arith.select %all, %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<3x40x64xf32>
  %v, %i = nm_sparse.pack #expert %broken : tensor<3x40x64xf32> to tensor<3x22x40xf32>, tensor<3x11x5xi8>
  return %v, %i : tensor<3x22x40xf32>, tensor<3x11x5xi8>
}
