// Kernels that take pointers and 32-bit numbers alone, declare their clusters, and
// use tensor maps that other kernels make: what hosts other than ours launch.
//
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a host-memory=true tokens=70" \
// RUN:   --nm-sparse-create-device-maps --nm-sparse-bind-arguments -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=LOWERED
// RUN: nm-run %s --entry pairs --device emulate --size 70 --lowered %t.mlir --check | FileCheck %s
// RUN: nm-run %s --entry split --device emulate --size 5 --lowered %t.mlir --check | FileCheck %s
// RUN: nm-run %s --entry panels --device emulate --size 70 --lowered %t.mlir --check | FileCheck %s
// CHECK: relative error {{.*}}: PASS

// LOWERED-LABEL: func.func @pairs
// LOWERED: gpu.launch_func {{.*}}@make_tensor_maps
// LOWERED-NOT: clusters in
// LOWERED: gpu.launch_func {{.*}}@pairs_kernel
// LOWERED-LABEL: llvm.func @pairs_kernel
// LOWERED-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// LOWERED: nvvm.fence.proxy.acquire
// LOWERED-LABEL: llvm.func @make_tensor_maps
// LOWERED: tensormap.replace.box.dim
// LOWERED: nvvm.fence.proxy.release

// A kernel that does not acquire its maps may use stale ones.
// RUN: sed '/nvvm.fence.proxy.acquire/d' %t.mlir > %t.acquire.mlir
// RUN: not nm-run %s --entry pairs --device emulate --size 70 --lowered %t.acquire.mlir 2>&1 | FileCheck %s --check-prefix=ACQUIRE
// ACQUIRE: uses the tensor map at {{.*}}, which a kernel wrote, but no fence.proxy.acquire of this CTA comes before

// Nor does it help where the maps were not released.
// RUN: sed '/nvvm.fence.proxy.release/d' %t.mlir > %t.release.mlir
// RUN: not nm-run %s --entry pairs --device emulate --size 70 --lowered %t.release.mlir 2>&1 | FileCheck %s --check-prefix=RELEASE
// RELEASE: but no fence.proxy.release came after that

// A map is not made of what happens to lie there.
// RUN: sed 's/dense<0> : vector<4xi32>/dense<1> : vector<4xi32>/' %t.mlir > %t.garbage.mlir
// RUN: not nm-run %s --entry pairs --device emulate --size 70 --lowered %t.garbage.mlir 2>&1 | FileCheck %s --check-prefix=GARBAGE
// GARBAGE: there is neither a tensor map at {{.*}} nor 128 bytes of zeros

// A field that is never set.
// RUN: sed '/tensormap.replace.box.dim/d' %t.mlir > %t.box.mlir
// RUN: not nm-run %s --entry pairs --device emulate --size 70 --lowered %t.box.mlir 2>&1 | FileCheck %s --check-prefix=BOX
// BOX: tensormap.replace has not set its box_dim 0

#sparse = #nm_sparse.encoding<2:4>
#paired = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>,
  grid = persistent<cluster = 2>>
func.func @pairs(%x: tensor<?x192xf16>, %w: tensor<192x128xf16, #sparse>, %init: tensor<?x128xf16>) -> tensor<?x128xf16> {
  %y = linalg.matmul {nm_sparse.config = #paired}
    ins(%x, %w : tensor<?x192xf16>, tensor<192x128xf16, #sparse>) outs(%init : tensor<?x128xf16>) -> tensor<?x128xf16>
  return %y : tensor<?x128xf16>
}

// Sums of parts of the contraction.
#vectors = #nm_sparse.encoding<8:32, block = [1, 32]>
#parts = #nm_tile.schedule<tile = [16, 64, 64], product = mma_expand<warps = 4, shares = 2>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>
func.func @split(%x: tensor<?x512xf16>, %w: tensor<512x64xf16, #vectors>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul {nm_sparse.config = #parts}
    ins(%x, %w : tensor<?x512xf16>, tensor<512x64xf16, #vectors>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

#wide = #nm_sparse.encoding<8:32, block = [1, 128]>
#gathered = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma<warps = [1, 4]>,
  transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
func.func @panels(%x: tensor<?x512xf16>, %w: tensor<512x128xf16, #wide>, %init: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %y = linalg.matmul {nm_sparse.config = #gathered}
    ins(%x, %w : tensor<?x512xf16>, tensor<512x128xf16, #wide>) outs(%init : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}
