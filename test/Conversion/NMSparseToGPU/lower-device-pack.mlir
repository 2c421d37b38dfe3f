// RUN: nm-opt %s --nm-sparse-lower-device-pack --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-lower-device-pack=where=host --split-input-file | FileCheck %s --check-prefix=HOST

// HOST-NOT: gpu.launch
// HOST-COUNT-7: nm_sparse.pack
// HOST-NOT: gpu.launch

#w = #nm_sparse.encoding<2:4, block = [1, 16]>

// A tile is 32 units of 8 outputs, and as many windows as fill 16 KB: two panel
// tiles, five window tiles. The host looks at what the kernel found when all else
// is done.

// CHECK: func.func private @nmsRuntimeCheckPacked(i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func @vector_wise
// CHECK-SAME: %[[W:.+]]: tensor<150x512xf16>
func.func @vector_wise(%w: tensor<150x512xf16>) -> (tensor<76x512xf16>, tensor<76x32xi8>) {
  // CHECK: %[[FOUND:.+]] = memref.alloca() : memref<1xi64>
  // CHECK: %[[DENSE:.+]] = bufferization.to_buffer %[[W]] read_only : tensor<150x512xf16> to memref<150x512xf16, strided<[?, 1], offset: ?>>
  // CHECK: %[[VALUES:.+]] = memref.alloc() : memref<76x512xf16>
  // CHECK: %[[INDEX:.+]] = memref.alloc() : memref<76x32xi8>
  // CHECK: memref.store %c-1_i64, %[[FOUND]]
  // CHECK: gpu.launch blocks({{.*}}) in (%{{.+}} = %c2{{.*}}, %{{.+}} = %c5{{.*}}, %{{.+}} = %c1{{.*}}) threads({{.*}}) in (%{{.+}} = %c256{{.*}}, {{.*}}) function(@vector_wise_pack)
  // CHECK: memref.alloc() : memref<32x256xi16, #gpu.address_space<workgroup>>
  // CHECK: %[[LIVE:.+]] = memref.alloc() : memref<8x16xi32, #gpu.address_space<workgroup>>
  // CHECK: %[[ANY:.+]] = memref.alloc() : memref<8x16xi32, #gpu.address_space<workgroup>>
  // The tile, 16 bytes at a time.
  // CHECK: vector.load %[[DENSE]]{{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf16>
  // CHECK: memref.load %[[DENSE]]
  // CHECK: gpu.barrier
  // The two units of a panel.
  // CHECK: memref.atomic_rmw ori %{{.+}}, %[[LIVE]]
  // CHECK: memref.atomic_rmw ori %{{.+}}, %[[ANY]]
  // CHECK: gpu.barrier
  // CHECK: math.ctpop
  // CHECK: memref.atomic_rmw minu %{{.+}}, %[[FOUND]]
  // CHECK: memref.store %{{.+}}, %[[INDEX]]
  // CHECK: gpu.barrier
  // CHECK: vector.store %{{.+}}, %[[VALUES]]{{.*}} {alignment = 16 : i64} : memref<76x512xf16>, vector<8xf16>
  // CHECK: gpu.terminator
  // CHECK: bufferization.to_tensor %[[VALUES]] restrict writable
  // CHECK: bufferization.to_tensor %[[INDEX]] restrict writable
  // CHECK: tensor.empty
  // CHECK: %[[WORD:.+]] = memref.load %[[FOUND]]
  // CHECK: call @nmsRuntimeCheckPacked(%[[WORD]], %c2_i64, %c4_i64, %c1_i64{{.*}}, %c38_i64, %c32_i64)
  // CHECK-NEXT: return
  %v, %i = nm_sparse.pack #w %w : tensor<150x512xf16> to tensor<76x512xf16>, tensor<76x32xi8>
  %later = tensor.empty() : tensor<4xf32>
  return %v, %i : tensor<76x512xf16>, tensor<76x32xi8>
}

// -----

#w = #nm_sparse.encoding<3:5, dim = 2>

// Rows along the contraction, which are no multiple of 16 bytes; nobody else sees
// the panel of a thread.

// CHECK-LABEL: func @element_wise
func.func @element_wise(%w: tensor<2x40x66xf8E5M2>) -> (tensor<2x42x40xf8E5M2>, tensor<2x42x40xi8>) {
  // CHECK: gpu.launch
  // CHECK-SAME: %{{.+}} = %c2{{.*}}) threads
  // CHECK-NOT: vector.load %{{.+}} : memref<2x40x66x
  // CHECK: memref.load %{{.+}} : memref<2x40x66xf8E5M2, strided<[?, ?, 1], offset: ?>>
  // CHECK: arith.bitcast %{{.+}} : f8E5M2 to i8
  // CHECK: gpu.barrier
  // CHECK-NOT: memref.atomic_rmw ori
  // CHECK: memref.atomic_rmw minu
  // CHECK: call @nmsRuntimeCheckPacked(%{{.+}}, %c3_i64, %c5_i64, %c2_i64, %c14_i64, %c40_i64)
  %v, %i = nm_sparse.pack #w %w : tensor<2x40x66xf8E5M2> to tensor<2x42x40xf8E5M2>, tensor<2x42x40xi8>
  return %v, %i : tensor<2x42x40xf8E5M2>, tensor<2x42x40xi8>
}

// -----

#w = #nm_sparse.encoding<8:16, block = [64, 128]>

// A window of a panel does not fit into shared memory.

// CHECK-LABEL: func @large_blocks
func.func @large_blocks(%w: tensor<1024x128xf16>) -> (tensor<512x128xf16>, tensor<8x1xi8>) {
  // CHECK: gpu.launch
  // CHECK-NOT: memref.alloc() : memref<{{.*}}x128xi16
  // CHECK: memref.alloc() : memref<1x1xi32, #gpu.address_space<workgroup>>
  // CHECK-NOT: vector.load
  // CHECK: gpu.terminator
  %v, %i = nm_sparse.pack #w %w : tensor<1024x128xf16> to tensor<512x128xf16>, tensor<8x1xi8>
  return %v, %i : tensor<512x128xf16>, tensor<8x1xi8>
}

// -----

#w = #nm_sparse.encoding<[2:3, block = [1, 2]], [1:2]>
#l = #nm_sparse.encoding<65:65>

// The host packs these.

// CHECK-LABEL: func @host
func.func @host(%w: tensor<3x2xf32>, %l: tensor<65x1xf32>)
    -> (tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>, tensor<65x1xf32>, tensor<65x1xi8>) {
  // CHECK-NOT: gpu.launch
  // CHECK-COUNT-2: nm_sparse.pack
  // CHECK-NOT: gpu.launch
  %v, %i, %j = nm_sparse.pack #w %w : tensor<3x2xf32> to tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>
  %lv, %li = nm_sparse.pack #l %l : tensor<65x1xf32> to tensor<65x1xf32>, tensor<65x1xi8>
  return %v, %i, %j, %lv, %li : tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>, tensor<65x1xf32>, tensor<65x1xi8>
}

// -----

#w = #nm_sparse.encoding<8:16>

// Bitmaps: a word for two windows, and pieces of what an output keeps.

// CHECK-LABEL: func @bitmaps
func.func @bitmaps(%w: tensor<33x40xf16>) -> (tensor<2x2x512xf16>, tensor<2x2x32xi32>) {
  // CHECK: %[[VALUES:.+]] = memref.alloc() : memref<2x2x512xf16>
  // CHECK: %[[BITS:.+]] = memref.alloc() : memref<2x2x32xi32>
  // CHECK: gpu.launch
  // CHECK: %[[TILE:.+]] = memref.alloc() : memref<64x64xi16, #gpu.address_space<workgroup>>
  // CHECK: memref.atomic_rmw minu
  // CHECK: gpu.barrier
  // CHECK: memref.store %{{.+}}, %[[BITS]][%{{.+}}, %{{.+}}, %{{.+}}]
  // CHECK-COUNT-8: memref.load %[[TILE]]
  // CHECK: vector.store %{{.+}}, %[[VALUES]][%{{.+}}, %{{.+}}, %{{.+}}] {alignment = 16 : i64} : memref<2x2x512xf16>, vector<8xf16>
  %v, %b = nm_sparse.pack #w storage = #nm_sparse.bitmap<#w> %w
    : tensor<33x40xf16> to tensor<2x2x512xf16>, tensor<2x2x32xi32>
  return %v, %b : tensor<2x2x512xf16>, tensor<2x2x32xi32>
}

// -----

#e = #nm_sparse.encoding<1:2>

// Each time around the loop uses the same word, and looks at it.

// CHECK-LABEL: func @in_loop
func.func @in_loop(%w: tensor<4x8xf32>, %n: index) -> tensor<2x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = tensor.empty() : tensor<2x8xf32>
  // CHECK: %[[FOUND:.+]] = memref.alloca() : memref<1xi64>
  // CHECK: scf.for
  // CHECK-NOT: memref.alloca()
  // CHECK: memref.store %c-1_i64, %[[FOUND]]
  // CHECK: gpu.launch
  // CHECK: memref.atomic_rmw minu %{{.+}}, %[[FOUND]]
  // CHECK: %[[WORD:.+]] = memref.load %[[FOUND]]
  // CHECK: call @nmsRuntimeCheckPacked(%[[WORD]]
  // CHECK-NEXT: scf.yield
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%before = %none) -> (tensor<2x8xf32>) {
    %v, %p = nm_sparse.pack #e %w : tensor<4x8xf32> to tensor<2x8xf32>, tensor<2x8xi8>
    scf.yield %v : tensor<2x8xf32>
  }
  return %last : tensor<2x8xf32>
}
