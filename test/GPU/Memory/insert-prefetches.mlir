// RUN: nm-opt %s --nm-sparse-insert-prefetches="chip=sm_90a tokens=256" | FileCheck %s
// RUN: nm-opt %s --nm-sparse-insert-prefetches="chip=sm_90a tokens=65536" | FileCheck %s --check-prefix=MANY
// RUN: nm-opt %s --nm-sparse-insert-prefetches=chip=sm_89 | FileCheck %s --check-prefix=OLD

// OLD-NOT: nm_tile.prefetch

#free = #nm_sparse.packed<#nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 64]>>, [1024, 1024], f16>

module attributes {gpu.container_module} {
// The values behind a tensor map become an argument of the kernel.
// CHECK-LABEL: func @layer
// CHECK: gpu.launch_func @kernels::@first {{.*}} args(%[[X:.*]] : memref<1024x?xf16>, %{{.*}} : memref<256x8xi8>, %[[Y:.*]] : memref<1024x?xf16>, %{{.*}} : !llvm.ptr, %[[V:.*]] : memref<256x1024xf16>)
func.func @layer(%x: memref<1024x?xf16>, %values: memref<256x1024xf16>,
                 %index: memref<256x8xi8>, %y: memref<1024x?xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %cast = memref.cast %values : memref<256x1024xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %cast box[%c64, %c64]
    : memref<*xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>,
      swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
  %pointer = builtin.unrealized_conversion_cast %map
    : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>,
      swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
    to !llvm.ptr
  gpu.launch_func @kernels::@first blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1)
    args(%x : memref<1024x?xf16>, %index : memref<256x8xi8>,
         %y : memref<1024x?xf16>, %pointer : !llvm.ptr)
  gpu.launch_func @kernels::@second blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1)
    args(%y : memref<1024x?xf16>, %index : memref<256x8xi8>)
  gpu.launch_func @kernels::@several blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1) args(%x : memref<1024x?xf16>)
  return
}

// What cannot be asked for is passed on as it is: buffers in a memory space, with
// strides, of bits, of tokens as rows, and without elements.
// CHECK-LABEL: func @others
func.func @others(%space: memref<1024x256xi8, 1>,
                  %strided: memref<1024x256xi8, strided<[512, 1]>>,
                  %bits: memref<1024x256xi1>, %tokens: memref<?x1024xi8>,
                  %none: memref<0x256xi8>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@other blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1)
    args(%space : memref<1024x256xi8, 1>,
         %strided : memref<1024x256xi8, strided<[512, 1]>>,
         %bits : memref<1024x256xi1>, %tokens : memref<?x1024xi8>,
         %none : memref<0x256xi8>)
  return
}

// CHECK-LABEL: func @tokens
func.func @tokens(%x: memref<256x1024xf16>, %xi: memref<256x1024xi8>,
                  %index: memref<256x8xi8>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@rows blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1)
    args(%x : memref<256x1024xf16>, %xi : memref<256x1024xi8>, %index : memref<256x8xi8>)
  return
}

// Ragged panels have any number of rows, which are no tokens: by default, 50 % of
// 1024 rows are assumed for each of 16 panels.
// CHECK-LABEL: func @ragged
// CHECK: args({{.*}}, %[[V:arg2]] : memref<?x64xf16>)
func.func @ragged(%panels: memref<16x4xi32>
                    {nm_sparse.component = #nm_sparse.component<"panels", weight = 0, of = #free>},
                  %index: memref<?x1xi32>
                    {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #free>},
                  %values: memref<?x64xf16>
                    {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #free>},
                  %x: memref<1024x256xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %cast = memref.cast %values : memref<?x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %cast box[%c64, %c64]
    : memref<*xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>,
      swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
  %pointer = builtin.unrealized_conversion_cast %map
    : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>,
      swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
    to !llvm.ptr
  gpu.launch_func @kernels::@ragged blocks in (%c64, %c1, %c1)
    threads in (%c64, %c1, %c1)
    args(%panels : memref<16x4xi32>, %index : memref<?x1xi32>, %pointer : !llvm.ptr,
         %x : memref<1024x256xf16>)
  return
}

gpu.module @kernels {
  // 31 KB of a CTA arrive in the time that the overlap hides, in whole pieces, and
  // as many CTAs ask as there are SMs.
  // With far more tokens, the same part of the contraction is asked for.
  // CHECK: gpu.func @first(%[[X:.*]]: memref<1024x?xf16>, %[[I:.*]]: memref<256x8xi8>, %{{.*}}: memref<1024x?xf16>, %{{.*}}: !llvm.ptr, %[[V:.*]]: memref<256x1024xf16>) kernel
  // CHECK-NEXT: nm_tile.prefetch %[[I]], 2048 of 132 :
  // CHECK-NEXT: nm_tile.prefetch %[[X]], 16384 of 132 :
  // CHECK-NEXT: nm_tile.prefetch %[[V]], 16384 of 132 :
  // CHECK-NOT: nm_tile.prefetch
  // MANY: gpu.func @first
  // MANY: nm_tile.prefetch %{{.*}}, 2048 of 132 : memref<256x8xi8>
  // MANY: nm_tile.prefetch %{{.*}}, 32768 of 132 : memref<1024x?xf16>
  // MANY: nm_tile.prefetch %{{.*}}, 2048 of 132 : memref<256x1024xf16>
  gpu.func @first(%x: memref<1024x?xf16>, %index: memref<256x8xi8>,
                  %y: memref<1024x?xf16>, %map: !llvm.ptr) kernel {
    nm_tile.hints has_sm streams(%index, %x, %map
      : memref<256x8xi8>, memref<1024x?xf16>, !llvm.ptr)
    gpu.return
  }

  // What an earlier kernel read or wrote is in L2.
  // CHECK: gpu.func @second
  // CHECK-NOT: nm_tile.prefetch
  gpu.func @second(%x: memref<1024x?xf16>, %index: memref<256x8xi8>) kernel {
    nm_tile.hints has_sm streams(%index, %x : memref<256x8xi8>, memref<1024x?xf16>)
    gpu.return
  }

  // CHECK: gpu.func @other
  // CHECK-NOT: nm_tile.prefetch
  gpu.func @other(%space: memref<1024x256xi8, 1>,
                  %strided: memref<1024x256xi8, strided<[512, 1]>>,
                  %bits: memref<1024x256xi1>, %tokens: memref<?x1024xi8>,
                  %none: memref<0x256xi8>) kernel {
    nm_tile.hints has_sm streams(%space, %strided, %bits, %tokens, %none
      : memref<1024x256xi8, 1>, memref<1024x256xi8, strided<[512, 1]>>,
        memref<1024x256xi1>, memref<?x1024xi8>, memref<0x256xi8>)
    gpu.return
  }

  // What is no stream, even if its elements are integers, is not asked for.
  // CHECK: gpu.func @rows(%{{.*}}: memref<256x1024xf16>, %{{.*}}: memref<256x1024xi8>, %[[ROWS_I:.*]]: memref<256x8xi8>)
  // CHECK-NEXT: nm_tile.prefetch %[[ROWS_I]],
  // CHECK-NOT: nm_tile.prefetch
  // CHECK: gpu.return
  gpu.func @rows(%x: memref<256x1024xf16>, %xi: memref<256x1024xi8>,
                 %index: memref<256x8xi8>) kernel {
    nm_tile.hints has_sm streams(%index : memref<256x8xi8>)
    gpu.return
  }

  // CHECK: gpu.func @ragged(%[[P:.*]]: memref<16x4xi32>, %[[I:.*]]: memref<?x1xi32>, %{{.*}}: !llvm.ptr, %[[X:.*]]: memref<1024x256xf16>, %[[V:.*]]: memref<?x64xf16>) kernel
  // CHECK-NEXT: nm_tile.prefetch %[[P]], 2048 of 132 :
  // CHECK-NEXT: nm_tile.prefetch %[[I]], 2048 of 132 :
  // CHECK-NEXT: nm_tile.prefetch %[[V]], 20480 of 132 :
  // CHECK-NEXT: nm_tile.prefetch %[[X]], 10240 of 132 :
  // CHECK-NOT: nm_tile.prefetch
  // CHECK: gpu.return
  gpu.func @ragged(%panels: memref<16x4xi32>, %index: memref<?x1xi32>,
                   %map: !llvm.ptr, %x: memref<1024x256xf16>) kernel {
    nm_tile.hints has_sm streams(%panels, %index, %map, %x
      : memref<16x4xi32>, memref<?x1xi32>, !llvm.ptr, memref<1024x256xf16>)
    gpu.return
  }

  // A kernel that does not overlap has nothing to wait for.
  gpu.func @several(%x: memref<1024x?xf16>) kernel {
    nm_tile.hints streams(%x : memref<1024x?xf16>)
    gpu.return
  }
}
}
