// RUN: nm-opt %s --split-input-file --verify-diagnostics

#w = #nm_sparse.encoding<free>
#b = #nm_sparse.bitmap<#w>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @numbers(%x: memref<1x4x8x8xf32>, %v: memref<?xf32>, %i: memref<1x1x296xi32>, %a: vector<32x32xf32>, %n: index) -> vector<32x32xf32> {
  // expected-error @below {{slice must be first row, first column, rows and columns with patches, and empty without, got 1 numbers}}
  %r = nm_tile.matmul #w storage = #b schedule = #s ins(%x, %v, %i : memref<1x4x8x8xf32>, memref<?xf32>, memref<1x1x296xi32>) at(first_row = %n) patches = <kernel = [1, 1], image = "bchw"> slice[%n] acc(%a : vector<32x32xf32>) -> vector<32x32xf32>
  return %r : vector<32x32xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#b = #nm_sparse.bitmap<#w>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @rank(%x: memref<4x64xf32>, %v: memref<?xf32>, %i: memref<1x1x296xi32>, %a: vector<32x32xf32>, %n: index) -> vector<32x32xf32> {
  // expected-error @below {{lhs must be an image of rank 4, got 'memref<4x64xf32>'}}
  %r = nm_tile.matmul #w storage = #b schedule = #s ins(%x, %v, %i : memref<4x64xf32>, memref<?xf32>, memref<1x1x296xi32>) at(first_row = %n) patches = <kernel = [1, 1], image = "bchw"> slice[%n, %n, %n, %n] acc(%a : vector<32x32xf32>) -> vector<32x32xf32>
  return %r : vector<32x32xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#b = #nm_sparse.bitmap<#w>
#s = #nm_tile.schedule<tile = [32, 32, 256], product = immediate<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @dynamic(%x: memref<1x4x?x8xf32>, %v: memref<?xf32>, %i: memref<1x1x296xi32>, %a: vector<32x32xf32>, %n: index) -> vector<32x32xf32> {
  // expected-error @below {{image must have static sizes but for its batch, got 'memref<1x4x?x8xf32>'}}
  %r = nm_tile.matmul #w storage = #b schedule = #s ins(%x, %v, %i : memref<1x4x?x8xf32>, memref<?xf32>, memref<1x1x296xi32>) at(first_row = %n) patches = <kernel = [1, 1], image = "bchw"> slice[%n, %n, %n, %n] acc(%a : vector<32x32xf32>) -> vector<32x32xf32>
  return %r : vector<32x32xf32>
}

// -----

#w = #nm_sparse.encoding<free>
#b = #nm_sparse.bitmap<#w>
#s = #nm_tile.schedule<tile = [1, 32, 256], product = dot<warps = 1>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @product(%x: memref<1x4x8x8xf32>, %v: memref<?xf32>, %i: memref<1x1x296xi32>, %a: vector<1x32xf32>, %n: index) -> vector<1x32xf32> {
  // expected-error @below {{with patches must have its weight in the code and an lhs with its rows first, got #nm_tile.schedule<}}
  %r = nm_tile.matmul #w storage = #b schedule = #s ins(%x, %v, %i : memref<1x4x8x8xf32>, memref<?xf32>, memref<1x1x296xi32>) at(first_row = %n) patches = <kernel = [1, 1], image = "bchw"> slice[%n, %n, %n, %n] acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return %r : vector<1x32xf32>
}
