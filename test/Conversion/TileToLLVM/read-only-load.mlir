// RUN: nm-opt %s --convert-gpu-to-nvvm | FileCheck %s

// Through the read-only path of L1; what is read once leaves no line there.

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel
  gpu.func @kernel(%x: memref<8x8xf16>, %v: memref<8x8xi32, 1>, %q: memref<64xi8>, %i: index, %out: memref<8xf16>,
                   %words: memref<4xi32>, %bytes: memref<8xi8>, %inside: i1) {
    // CHECK: %[[H:.*]] = llvm.inline_asm "ld.global.nc.b16 $0, [$1];", "=h,l" %{{.*}} : (!llvm.ptr) -> i16
    // CHECK: llvm.bitcast %[[H]] : i16 to f16
    %0 = nm_tile.read_only_load %x[%i, %i] : memref<8x8xf16>, f16
    // CHECK: %[[V:.*]] = llvm.inline_asm "ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l" %{{.*}} : (!llvm.ptr) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK-COUNT-4: llvm.extractvalue %[[V]]
    // CHECK: llvm.bitcast %{{.*}} : vector<4xi32> to vector<8xf16>
    %1 = nm_tile.read_only_load once %x[%i, %i] : memref<8x8xf16>, vector<8xf16>
    // CHECK: llvm.inline_asm "ld.global.nc.b32 $0, [$1];", "=r,l" %{{.*}} : (!llvm.ptr<1>) -> i32
    %2 = nm_tile.read_only_load %v[%i, %i] : memref<8x8xi32, 1>, i32
    // CHECK: %[[B:.*]] = llvm.inline_asm "ld.global.nc.b8 $0, [$1];", "=h,l"
    // CHECK: llvm.trunc %[[B]] : i16 to i8
    %3 = nm_tile.read_only_load %q[%i] : memref<64xi8>, i8
    // What does not exist is not read, and zero.
    // CHECK: llvm.inline_asm "mov.b32 $0, 0; @$2 ld.global.nc.b32 $0, [$1];", "=&r,l,b" %{{.*}}, %{{.*}} : (!llvm.ptr<1>, i1) -> i32
    %4 = nm_tile.read_only_load %v[%i, %i] exists(%inside) : memref<8x8xi32, 1>, i32
    // CHECK: llvm.inline_asm "mov.b16 $0, 0; @$2 ld.global.nc.b16 $0, [$1];", "=&h,l,b"
    %5 = nm_tile.read_only_load %x[%i, %i] exists(%inside) : memref<8x8xf16>, f16
    // CHECK: llvm.inline_asm "mov.b32 $0, 0; mov.b32 $1, 0; @$3 ld.global.nc.v2.b32 {$0, $1}, [$2];", "=&r,=&r,l,b"
    %6 = nm_tile.read_only_load %x[%i, %i] exists(%inside) : memref<8x8xf16>, vector<4xf16>
    memref.store %4, %words[%i] : memref<4xi32>
    memref.store %5, %out[%i] : memref<8xf16>
    vector.store %6, %out[%i] : memref<8xf16>, vector<4xf16>
    memref.store %0, %out[%i] : memref<8xf16>
    vector.store %1, %out[%i] : memref<8xf16>, vector<8xf16>
    memref.store %2, %words[%i] : memref<4xi32>
    memref.store %3, %bytes[%i] : memref<8xi8>
    gpu.return
  }
}
