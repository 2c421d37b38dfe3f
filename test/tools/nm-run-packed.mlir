// Arguments that hold a packed weight: nm-run fills them together, with a
// random weight of the pattern. An index that nothing says a weight of is no
// data that could be filled with random numbers.

// RUN: nm-run %s --entry packed --device emulate --output %t.emulate | FileCheck %s
// RUN: nm-run %s --entry packed --device cpu --output %t.cpu | FileCheck %s
// RUN: %python -c "import numpy; print(numpy.abs(numpy.load('%t.emulate.0.npy') - numpy.load('%t.cpu.0.npy')).max() < 1e-5, numpy.load('%t.cpu.0.npy').shape)" | FileCheck %s --check-prefix=EQUAL
// CHECK: @packed on
// EQUAL: True (64, 90)

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#packed = #nm_sparse.packed<#w, [60, 90], f32>

func.func @packed(%i: tensor<30x3xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
                  %x: tensor<?x?xf32>,
                  %v: tensor<30x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
                  %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x?xf32>, tensor<30x96xf32>, tensor<30x3xi8>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// RUN: not nm-run %s --entry plain 2>&1 | FileCheck %s --check-prefix=PLAIN
// PLAIN: nm-run: cannot make argument #2 of @plain: tensor<30x3xi8> is the index of a packed weight with #nm_sparse.encoding<2:4, block = [1, 32]>, which random numbers are not; say which weight it belongs to with the attribute nm_sparse.component, on its values, too, or take the dense weight{{$}}
func.func private @product(%x: tensor<?x60xf32>, %v: tensor<30x96xf32>, %i: tensor<30x3xi8>, %init: tensor<?x90xf32>) -> tensor<?x90xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x60xf32>, tensor<30x96xf32>, tensor<30x3xi8>) outs(%init : tensor<?x90xf32>) -> tensor<?x90xf32>
  return %y : tensor<?x90xf32>
}
func.func @plain(%x: tensor<?x60xf32>, %v: tensor<30x96xf32>, %i: tensor<30x3xi8>, %init: tensor<?x90xf32>) -> tensor<?x90xf32> {
  %y = func.call @product(%x, %v, %i, %init) : (tensor<?x60xf32>, tensor<30x96xf32>, tensor<30x3xi8>, tensor<?x90xf32>) -> tensor<?x90xf32>
  return %y : tensor<?x90xf32>
}
