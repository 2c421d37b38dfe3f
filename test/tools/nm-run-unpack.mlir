// The index that an unpack reads must be declared as that of its weight.
//
// RUN: not nm-run %s --entry plain 2>&1 | FileCheck %s --check-prefix=PLAIN
// PLAIN: nm-run: cannot make argument #1 of @plain: tensor<32x3xi8> is the index of a packed weight with

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#packed = #nm_sparse.packed<#w, [64, 96], f32>
#other = #nm_sparse.packed<#nm_sparse.encoding<4:8, block = [1, 32]>, [64, 96], f32>

func.func @plain(%v: tensor<32x96xf32>, %i: tensor<32x3xi8>) -> tensor<64x96xf32> {
  %w = nm_sparse.unpack #w %v, %i : tensor<32x96xf32>, tensor<32x3xi8> to tensor<64x96xf32>
  return %w : tensor<64x96xf32>
}

// RUN: nm-run %s --entry declared --device cpu | FileCheck %s --check-prefix=DECLARED
// DECLARED: @declared on the CPU
func.func @declared(%v: tensor<32x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
                    %i: tensor<32x3xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}) -> tensor<64x96xf32> {
  %w = nm_sparse.unpack #w %v, %i : tensor<32x96xf32>, tensor<32x3xi8> to tensor<64x96xf32>
  return %w : tensor<64x96xf32>
}

// RUN: not nm-run %s --entry wrong 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: nm-run: argument #1 of @wrong is 'index' of a weight with #nm_sparse.encoding<4:8, block = [1, 32]> by its attribute nm_sparse.component, but is read as positions of #nm_sparse.encoding<2:4, block = [1, 32]>{{$}}
func.func @wrong(%v: tensor<32x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #other>},
                 %i: tensor<32x3xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #other>}) -> tensor<64x96xf32> {
  %w = nm_sparse.unpack #w %v, %i : tensor<32x96xf32>, tensor<32x3xi8> to tensor<64x96xf32>
  return %w : tensor<64x96xf32>
}
