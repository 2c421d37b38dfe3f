// REQUIRES: nm-slow
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s
// RUN: nm-run %s --entry halves --device emulate --check --size 70 --bank-conflicts | FileCheck %s --check-prefixes=PASSED,BANKS
// RUN: nm-run %s --entry halves --device emulate --check --size 37 --last-first | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry quarters --device emulate --check --size 96 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry whole --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry behind_the_end --device emulate --check --size 50 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry blocks --device emulate --check --size 24 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry shares --device emulate --check --size 40 | FileCheck %s --check-prefix=PASSED
// RUN: nm-compile %s -o %t.ptx --manifest %t.json && FileCheck %s --check-prefix=MANIFEST --input-file=%t.json

// Lanes read 16 bytes of values without conflicts of banks; of bits, two of the
// four that have the same output read another word of a bank.
// BANKS: ld.shared 1536 accesses of warps, 4608 wavefronts, 768 of them for conflicts
// PASSED: relative error {{.*}}: PASS

// Maps are views of the buffers that the caller has: values of segments, and
// pairs of rows of four segments.
// MANIFEST: "box": [
// MANIFEST-NEXT: 1,
// MANIFEST-NEXT: 2,
// MANIFEST-NEXT: 2,
// MANIFEST-NEXT: 2,
// MANIFEST-NEXT: 64
// MANIFEST: "source": "arg1"
// MANIFEST-NEXT: "strides": [
// MANIFEST-NEXT: "256"
// MANIFEST-NEXT: "512"
// MANIFEST-NEXT: "256"
// MANIFEST-NEXT: "12288"
// MANIFEST-NEXT: "1"
// MANIFEST: "box": [
// MANIFEST: "box": [
// MANIFEST-NEXT: 1,
// MANIFEST-NEXT: 8,
// MANIFEST-NEXT: 4,
// MANIFEST-NEXT: 2,
// MANIFEST-NEXT: 64
// MANIFEST: "sizes": [
// MANIFEST-NEXT: "12"
// MANIFEST-NEXT: "8"
// MANIFEST-NEXT: "4"
// MANIFEST-NEXT: "2"
// MANIFEST-NEXT: "arg0.size[1]"
// MANIFEST: "strides": [
// MANIFEST-NEXT: "mul(mul(mul(buffer0.stride[0], 2), 8), 4)"
// MANIFEST-NEXT: "mul(buffer0.stride[0], 2)"

#w = #nm_sparse.encoding<8:16>
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// A piece of values at once, and bits; queues of values, and a product for each 16
// rows. Nothing is counted, and values have a swizzled box for 8 outputs of two
// blocks of 32.
// CHECK-LABEL: llvm.func @halves_kernel
// CHECK-NOT: llvm.intr.ctpop
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: nvvm.shfl.sync idx
// CHECK: nvvm.dot.accumulate.2way
// CHECK: nvvm.prmt
// CHECK: shf.r.clamp.b32
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-2: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0,{{.*}}, $31}, {$64, $65, $66, $67}, $68, p, 1, 1, 1;
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: shf.l.clamp.b32
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: nvvm.fence.proxy
// CHECK-COUNT-8: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK-NOT: nvvm.cp.async.bulk.tensor
// CHECK: llvm.return

// Segments of half a tile, 130 outputs, and a bias.
func.func @halves(%x: tensor<768x?xf16>, %w: tensor<768x130xf16, #w>, %bias: tensor<130xf16>, %out: tensor<130x?xf16>) -> tensor<130x?xf16> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<768x?xf16>
  %empty = tensor.empty(%m) : tensor<130x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<130x?xf32>) -> tensor<130x?xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #s} ins(%x, %w : tensor<768x?xf16>, tensor<768x130xf16, #w>)
    outs(%init : tensor<130x?xf32>) -> tensor<130x?xf32>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(n, m) -> (n, m)>, affine_map<(n, m) -> (n)>, affine_map<(n, m) -> (n, m)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<130x?xf32>, tensor<130xf16>) outs(%out : tensor<130x?xf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %r = arith.truncf %d : f32 to f16
    linalg.yield %r : f16
  } -> tensor<130x?xf16>
  return %sum : tensor<130x?xf16>
}

// Segments of a quarter of a tile, each with values of its own piece and bits of
// half a word; a step of 32 rows, which would be one part and is two; token-major
// results of persistent CTAs.
#dense = #nm_sparse.encoding<8:8>
#quarters = #nm_tile.schedule<tile = [96, 128, 32], product = wgmma_expand<warps = 8, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent>
func.func @quarters(%x: tensor<320x?xbf16>, %w: tensor<320x200xbf16, #dense>, %init: tensor<?x200xbf16>) -> tensor<?x200xbf16> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #quarters}
    ins(%x, %w : tensor<320x?xbf16>, tensor<320x200xbf16, #dense>) outs(%init : tensor<?x200xbf16>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

// Segments of a whole tile with two words of bits, two products of a warpgroup, and
// CTAs that share the contraction.
#long = #nm_sparse.encoding<16:64>
#whole = #nm_tile.schedule<tile = [16, 128, 64], product = wgmma_expand<warps = 4, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 2>>
func.func @whole(%x: tensor<1024x16xf16>, %w: tensor<1024x128xf16, #long>, %init: tensor<16x128xf32>) -> tensor<16x128xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #whole}
    ins(%x, %w : tensor<1024x16xf16>, tensor<1024x128xf16, #long>) outs(%init : tensor<16x128xf32>) -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}

// A last K step of a third of the groups, and a tile of 192 outputs, of which 70
// exist.
#last = #nm_tile.schedule<tile = [56, 192, 96], product = wgmma_expand<warps = 12, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @behind_the_end(%x: tensor<448x?xf16>, %w: tensor<70x448xf16, #nm_sparse.encoding<2:4, dim = 1>>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #last}
    ins(%x, %w : tensor<448x?xf16>, tensor<70x448xf16, #nm_sparse.encoding<2:4, dim = 1>>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

// Blocks, whose bits are alike.
#blocks = #nm_sparse.encoding<2:4, block = [4, 4]>
#blocks_schedule = #nm_tile.schedule<tile = [24, 64, 32], product = wgmma_expand<warps = 4, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 4, producers = 4>>
func.func @blocks(%x: tensor<256x?xf16>, %w: tensor<256x96xf16, #blocks>, %init: tensor<96x?xf32>) -> tensor<96x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #blocks_schedule}
    ins(%x, %w : tensor<256x?xf16>, tensor<256x96xf16, #blocks>) outs(%init : tensor<96x?xf32>) -> tensor<96x?xf32>
  return %y : tensor<96x?xf32>
}

// Groups of warps with a group of segments each.
#shares = #nm_tile.schedule<tile = [24, 128, 64], product = wgmma_expand<warps = 16, shares = 2, segments = true>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
func.func @shares(%x: tensor<704x?xf16>, %w: tensor<704x150xf16, #w>, %init: tensor<150x?xf32>) -> tensor<150x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (n, m)>]
    {nm_sparse.config = #shares}
    ins(%x, %w : tensor<704x?xf16>, tensor<704x150xf16, #w>) outs(%init : tensor<150x?xf32>) -> tensor<150x?xf32>
  return %y : tensor<150x?xf32>
}
