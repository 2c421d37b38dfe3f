// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_120a | FileCheck %s --check-prefix=ORDERED
// RUN: nm-run %s --entry token_major --device emulate --check --size 70 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry token_major --device emulate --check --size 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 37 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry feature_major --device emulate --check --size 64 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry panels --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry batched --device emulate --check --size 130 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry ring --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry bulk --device emulate --check --size 150 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry bulk_features --device emulate --check --size 50 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry integers --device emulate --check --size 75 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry floats --device emulate --check --size 75 | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Values are read as they are stored, 16 outputs at a time. Two words of bits are
// the metadata of two products, which four tokens' lanes each hold half of.
// CHECK-LABEL: llvm.func @token_major_kernel
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.prmt
// CHECK: llvm.intr.bitreverse
// CHECK: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK: nvvm.mma.sp.sync A[%{{.*}}] B[%{{.*}}] C[%{{.*}}] sparseMetadata[%[[WORD:.*]]] selector[%{{.*}}] {shape = #nvvm.shape<m = 16, n = 8, k = 32>} : (vector<2xf16>
// CHECK: nvvm.mma.sp.sync {{.*}} sparseMetadata[%[[WORD]]] selector
// CHECK: llvm.return

#w = #nm_sparse.encoding<2:4>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = mma_sp<warps = [2, 2]>,
  transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>>

// A last K step of half as many rows, 130 outputs, and a bias.
func.func @token_major(%x: tensor<?x352xf16>, %w: tensor<352x130xf16, #w>, %bias: tensor<130xf16>, %out: tensor<?x130xf16>) -> tensor<?x130xf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x352xf16>
  %empty = tensor.empty(%m) : tensor<?x130xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x130xf32>) -> tensor<?x130xf32>
  %y = linalg.matmul {nm_sparse.config = #s} ins(%x, %w : tensor<?x352xf16>, tensor<352x130xf16, #w>)
    outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<?x130xf32>, tensor<130xf16>) outs(%out : tensor<?x130xf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x130xf16>
  return %sum : tensor<?x130xf16>
}

// Rows of x that are copied element by element, tiles of 40 tokens, and parts of
// the contraction in three CTAs.
#transposed = #nm_sparse.encoding<2:4, dim = 1>
#split = #nm_tile.schedule<tile = [40, 128, 64], product = mma_sp<warps = [1, 4]>,
  transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat<split_k = 3>>
func.func @feature_major(%x: tensor<330x?xbf16>, %w: tensor<70x330xbf16, #transposed>, %init: tensor<70x?xf32>) -> tensor<70x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #split}
    ins(%x, %w : tensor<330x?xbf16>, tensor<70x330xbf16, #transposed>) outs(%init : tensor<70x?xf32>) -> tensor<70x?xf32>
  return %y : tensor<70x?xf32>
}

// Panels of 16 outputs, whose bits are the same.
#panel = #nm_sparse.encoding<2:4, block = [1, 16]>
func.func @panels(%x: tensor<72x256xf16>, %w: tensor<256x128xf16, #panel>, %init: tensor<72x128xf16>) -> tensor<72x128xf16> {
  %y = linalg.matmul {nm_sparse.config = #s}
    ins(%x, %w : tensor<72x256xf16>, tensor<256x128xf16, #panel>) outs(%init : tensor<72x128xf16>) -> tensor<72x128xf16>
  return %y : tensor<72x128xf16>
}

// A weight for each product of the batch, and a single warp.
#one = #nm_tile.schedule<tile = [24, 32, 32], product = mma_sp<warps = [1, 1]>,
  transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>>
func.func @batched(%x: tensor<2x?x256xf16>, %w: tensor<2x256x96xf16, #nm_sparse.encoding<2:4, dim = 1>>, %init: tensor<2x?x96xf16>) -> tensor<2x?x96xf16> {
  %y = linalg.batch_matmul {nm_sparse.config = #one}
    ins(%x, %w : tensor<2x?x256xf16>, tensor<2x256x96xf16, #nm_sparse.encoding<2:4, dim = 1>>) outs(%init : tensor<2x?x96xf16>) -> tensor<2x?x96xf16>
  return %y : tensor<2x?x96xf16>
}

// Warps that only copy, for CTAs that share tiles along the contraction.
#produced = #nm_tile.schedule<tile = [16, 64, 32], product = mma_sp<warps = [1, 2]>,
  transfers = {x = copy, values = copy, index = staged}, pipeline = ring<stages = 3, producers = 2>, grid = persistent<stream_k = true>>
func.func @ring(%x: tensor<?x328xf16>, %w: tensor<328x1000xf16, #w>, %init: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %y = linalg.matmul {nm_sparse.config = #produced}
    ins(%x, %w : tensor<?x328xf16>, tensor<328x1000xf16, #w>) outs(%init : tensor<?x1000xf32>) -> tensor<?x1000xf32>
  return %y : tensor<?x1000xf32>
}

// The tensor memory accelerator copies, for pairs of CTAs.
#paired = #nm_tile.schedule<tile = [64, 64, 64], product = mma_sp<warps = [2, 2]>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = persistent<cluster = 2>>
func.func @bulk(%x: tensor<?x330xf16>, %w: tensor<330x250xf16, #w>, %init: tensor<?x250xf16>) -> tensor<?x250xf16> {
  %y = linalg.matmul {nm_sparse.config = #paired}
    ins(%x, %w : tensor<?x330xf16>, tensor<330x250xf16, #w>) outs(%init : tensor<?x250xf16>) -> tensor<?x250xf16>
  return %y : tensor<?x250xf16>
}

#accelerated = #nm_tile.schedule<tile = [24, 64, 32], product = mma_sp<warps = [1, 2]>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
func.func @bulk_features(%x: tensor<448x?xbf16>, %w: tensor<448x250xbf16, #w>, %init: tensor<250x?xf32>) -> tensor<250x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #accelerated}
    ins(%x, %w : tensor<448x?xbf16>, tensor<448x250xbf16, #w>) outs(%init : tensor<250x?xf32>) -> tensor<250x?xf32>
  return %y : tensor<250x?xf32>
}

// A product has the bits of two tiles of the weight, and each lane those of one
// output: its word is the metadata, with no half of another one.
// CHECK-LABEL: llvm.func @integers_kernel
// CHECK-NOT: nvvm.prmt
// CHECK: llvm.intr.bitreverse
// CHECK: nvvm.mma.sp.sync {{.*}}s8>, shape = #nvvm.shape<m = 16, n = 8, k = 64>} : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK: llvm.return
#bytes = #nm_tile.schedule<tile = [48, 128, 64], product = mma_sp<warps = [2, 4]>,
  transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>>
func.func @integers(%x: tensor<?x424xi8>, %w: tensor<424x130xi8, #w>, %init: tensor<?x130xi32>) -> tensor<?x130xi32> {
  %y = linalg.matmul {nm_sparse.config = #bytes} ins(%x, %w : tensor<?x424xi8>, tensor<424x130xi8, #w>)
    outs(%init : tensor<?x130xi32>) -> tensor<?x130xi32>
  return %y : tensor<?x130xi32>
}

// Those of 8-bit floats are text, too, which says where metadata is ordered.
// CHECK-LABEL: llvm.func @floats_kernel
// CHECK: llvm.inline_asm has_side_effects "mma.sp.sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9, $10, $11}, {$12, $13, $14, $15}, $16, 0x0;", "=f,=f,=f,=f,r,r,r,r,r,r,r,r,f,f,f,f,r"
// CHECK: llvm.return
// ORDERED-LABEL: llvm.func @floats_kernel
// ORDERED: llvm.inline_asm has_side_effects "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32 {

// Feature-major activations are transposed on their way to registers;
// kernels of many tokens have rows that were copied to where they are aligned.
// CHECK-LABEL: llvm.func @feature_major_tokens_{{[0-9]+}}_kernel
// CHECK: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.mma.sp.sync {{.*}}bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 32>}
// ORDERED-LABEL: llvm.func @feature_major_tokens_{{[0-9]+}}_kernel
// ORDERED: nvvm.mma.sp.sync {{.*}}orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 32>}
func.func @floats(%x: tensor<?x424xf8E5M2>, %w: tensor<424x130xf8E5M2, #w>, %init: tensor<?x130xf32>) -> tensor<?x130xf32> {
  %y = linalg.matmul {nm_sparse.config = #bytes} ins(%x, %w : tensor<?x424xf8E5M2>, tensor<424x130xf8E5M2, #w>)
    outs(%init : tensor<?x130xf32>) -> tensor<?x130xf32>
  return %y : tensor<?x130xf32>
}
