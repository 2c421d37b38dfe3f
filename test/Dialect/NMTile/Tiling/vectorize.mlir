// RUN: nm-opt %s --nm-sparse-vectorize --split-input-file --verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#w256 = #nm_sparse.encoding<8:32, block = [1, 256]>
#by_panel = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#by_outputs = #nm_tile.schedule<tile = [128, 256, 32], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#id = affine_map<(a, b) -> (a, b)>
#tr = affine_map<(a, b) -> (b, a)>
#row = affine_map<(a, b) -> (b)>
#col = affine_map<(a, b) -> (a)>
#scalar = affine_map<(a, b) -> ()>

// Bias over outputs, scale over tokens, a scalar, a constant, a destination that
// is read, then a cast with a transposed result: no tile goes through memory.

// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0) -> (d0, 0)>
// CHECK-DAG: #[[TR:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func @epilogue
// CHECK-SAME: %[[BIAS_T:[a-z0-9]*]]: tensor<128xf32>, %[[SCALE_T:[a-z0-9]*]]: tensor<?xf32>, %[[ALPHA:[a-z0-9]*]]: tensor<f32>, %[[RES:[a-z0-9]*]]: tensor<?x128xf32>
// CHECK: scf.forall {{.*}} shared_outs(%[[O:.*]] =
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<128x128xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} = %[[ZERO]])
// CHECK: nm_tile.matmul {{.*}} tokens_contiguous
// CHECK-NOT: vector.transfer_write
// CHECK: %[[B:.*]] = vector.transfer_read %[[BIAS_T]]{{.*}} {in_bounds = [true, true], permutation_map = #[[BIAS]]}
// CHECK: %[[S:.*]] = vector.transfer_read %[[SCALE_T]]{{.*}} {in_bounds = [false, true], permutation_map = #[[SCALE]]}
// CHECK: %[[A:.*]] = tensor.extract %[[ALPHA]][]
// CHECK: %[[R:.*]] = vector.transfer_read %[[RES]]{{.*}} {in_bounds = [false, true]}
// CHECK: %[[V0:.*]] = arith.addf %[[SUM]], %[[B]] : vector<128x128xf32>
// CHECK: %[[V1:.*]] = arith.mulf %[[V0]], %[[S]]
// CHECK: %[[AV:.*]] = vector.broadcast %[[A]] : f32 to vector<128x128xf32>
// CHECK: %[[V2:.*]] = arith.mulf %[[V1]], %[[AV]]
// CHECK: %[[V3:.*]] = arith.addf %[[V2]], %[[R]]
// CHECK: %[[P:.*]] = arith.cmpf ogt, %[[V3]], %{{.*}} : vector<128x128xf32>
// CHECK: %[[V4:.*]] = arith.select %[[P]], %[[V3]], %{{.*}} : vector<128x128xi1>, vector<128x128xf32>
// CHECK: %[[H:.*]] = arith.truncf %[[V4]] : vector<128x128xf32> to vector<128x128xf16>
// CHECK: %[[Y:.*]] = vector.transfer_write %[[H]], %[[O]]{{.*}} {in_bounds = [false, true], permutation_map = #[[TR]]}
// CHECK: tensor.parallel_insert_slice %[[Y]]
func.func @epilogue(%xs: tensor<32x128xf16>, %vs: tensor<32x128xf16>,
                    %bias: tensor<128xf32>, %scale: tensor<?xf32>,
                    %alpha: tensor<f32>, %res: tensor<?x128xf32>,
                    %e: tensor<?x128xf32>, %out: tensor<128x?xf16>, %m: index)
    -> tensor<128x?xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<128x?xf16>) {
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
    %acc0 = vector.transfer_read %init[%c0, %c0], %zero {in_bounds = [false, true]} : tensor<?x128xf32>, vector<128x128xf32>
    %sum = scf.for %k = %c0 to %c1 step %c1 iter_args(%acc = %acc0) -> (vector<128x128xf32>) {
      %p = nm_tile.matmul #w schedule = #s condensed
        ins(%xs, %vs : tensor<32x128xf16>, tensor<32x128xf16>)
        acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
      scf.yield %p : vector<128x128xf32>
    }
    %y = vector.transfer_write %sum, %init[%c0, %c0] {in_bounds = [false, true]} : vector<128x128xf32>, tensor<?x128xf32>
    %a = linalg.generic {indexing_maps = [#id, #row, #col, #scalar, #id],
                         iterator_types = ["parallel", "parallel"]}
        ins(%y, %bias, %scale, %alpha : tensor<?x128xf32>, tensor<128xf32>, tensor<?xf32>, tensor<f32>)
        outs(%res : tensor<?x128xf32>) {
    ^bb0(%in: f32, %b: f32, %s: f32, %al: f32, %old: f32):
      %0 = arith.addf %in, %b : f32
      %1 = arith.mulf %0, %s : f32
      %2 = arith.mulf %1, %al : f32
      %3 = arith.addf %2, %old : f32
      %pos = arith.cmpf ogt, %3, %zero : f32
      %4 = arith.select %pos, %3, %zero : f32
      linalg.yield %4 : f32
    } -> tensor<?x128xf32>
    %h = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x128xf32>) outs(%o : tensor<128x?xf16>) {
    ^bb0(%in: f32, %old: f16):
      %0 = arith.truncf %in : f32 to f16
      linalg.yield %0 : f16
    } -> tensor<128x?xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0, 0] [128, %m] [1, 1] : tensor<128x?xf16> into tensor<128x?xf16>
    }
  }
  return %r : tensor<128x?xf16>
}

// A bias that initializes the accumulator is read as a vector, in f16, and
// becomes the f32 that the loop adds to.

// CHECK-LABEL: func @bias_init
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}} : tensor<128xf16>, vector<128x128xf16>
// CHECK: %[[A:.*]] = arith.extf %[[B]]
// CHECK: scf.for {{.*}} = %[[A]])
// CHECK-NOT: tokens_contiguous
// CHECK: vector.transfer_write
// CHECK-NOT: vector.transfer_write
func.func @bias_init(%xs: tensor<32x128xf16>, %vs: tensor<32x128xf16>,
                     %bias: tensor<128xf16>, %out: tensor<128x128xf16>)
    -> tensor<128x128xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<128x128xf16>) {
    %init = linalg.broadcast ins(%bias : tensor<128xf16>) outs(%o : tensor<128x128xf16>) dimensions = [0]
    %read = vector.transfer_read %init[%c0, %c0], %zero {in_bounds = [true, true]} : tensor<128x128xf16>, vector<128x128xf16>
    %acc0 = arith.extf %read : vector<128x128xf16> to vector<128x128xf32>
    %sum = scf.for %k = %c0 to %c1 step %c1 iter_args(%acc = %acc0) -> (vector<128x128xf32>) {
      %p = nm_tile.matmul #w schedule = #s condensed
        ins(%xs, %vs : tensor<32x128xf16>, tensor<32x128xf16>)
        acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
      scf.yield %p : vector<128x128xf32>
    }
    %half = arith.truncf %sum : vector<128x128xf32> to vector<128x128xf16>
    %y = vector.transfer_write %half, %init[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, tensor<128x128xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [128, 128] [1, 1] : tensor<128x128xf16> into tensor<128x128xf16>
    }
  }
  return %r : tensor<128x128xf16>
}

// Two warpgroups whose tiles are a product of 64 tokens and the 256 outputs of a
// panel: with tokens as rows the operands are read least, and what is written
// last, of 16 bits and in the other order, is transposed by the warps. A bias
// does not stand against it.

// CHECK-LABEL: func @tokens_by_panel
// CHECK: nm_tile.matmul
// CHECK-NOT: tokens_contiguous
// CHECK: vector.transfer_read {{.*}} : tensor<256xf32>
// CHECK: vector.transfer_write {{.*}} : vector<128x256xf16>, tensor<256x128xf16>
func.func @tokens_by_panel(%xs: tensor<32x128xf16>, %vs: tensor<32x256xf16>,
                           %bias: tensor<256xf32>, %e: tensor<256x128xf32>,
                           %out: tensor<256x128xf16>) -> tensor<256x128xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x256xf32>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<256x128xf16>) {
    %sum = nm_tile.matmul #w256 schedule = #by_panel condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x256xf16>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %y = vector.transfer_write %sum, %e[%c0, %c0] {in_bounds = [true, true], permutation_map = #tr}
      : vector<128x256xf32>, tensor<256x128xf32>
    %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
        ins(%y, %bias : tensor<256x128xf32>, tensor<256xf32>) outs(%o : tensor<256x128xf16>) {
    ^bb0(%in: f32, %b: f32, %old: f16):
      %0 = arith.addf %in, %b : f32
      %1 = arith.truncf %0 : f32 to f16
      linalg.yield %1 : f16
    } -> tensor<256x128xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0, 0] [256, 128] [1, 1] : tensor<256x128xf16> into tensor<256x128xf16>
    }
  }
  return %r : tensor<256x128xf16>
}

// Not with a residual, of which a thread would read single elements,

// CHECK-LABEL: func @tile_is_read
// CHECK: nm_tile.matmul {{.*}} tokens_contiguous
func.func @tile_is_read(%xs: tensor<32x128xf16>, %vs: tensor<32x256xf16>, %res: tensor<256x128xf16>,
    %e: tensor<256x128xf32>, %out: tensor<256x128xf16>) -> tensor<256x128xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x256xf32>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<256x128xf16>) {
    %sum = nm_tile.matmul #w256 schedule = #by_panel condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x256xf16>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %y = vector.transfer_write %sum, %e[%c0, %c0] {in_bounds = [true, true], permutation_map = #tr}
      : vector<128x256xf32>, tensor<256x128xf32>
    %h = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%y, %res : tensor<256x128xf32>, tensor<256x128xf16>) outs(%o : tensor<256x128xf16>) {
    ^bb0(%in: f32, %r16: f16, %old: f16):
      %r32 = arith.extf %r16 : f16 to f32
      %0 = arith.addf %in, %r32 : f32
      %1 = arith.truncf %0 : f32 to f16
      linalg.yield %1 : f16
    } -> tensor<256x128xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0, 0] [256, 128] [1, 1] : tensor<256x128xf16> into tensor<256x128xf16>
    }
  }
  return %r : tensor<256x128xf16>
}

// nor with elements of 32 bits,

// CHECK-LABEL: func @wide_elements
// CHECK: nm_tile.matmul {{.*}} tokens_contiguous
func.func @wide_elements(%xs: tensor<32x128xf16>, %vs: tensor<32x256xf16>,
    %e: tensor<256x128xf32>, %out: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x256xf32>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<256x128xf32>) {
    %sum = nm_tile.matmul #w256 schedule = #by_panel condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x256xf16>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %y = vector.transfer_write %sum, %e[%c0, %c0] {in_bounds = [true, true], permutation_map = #tr}
      : vector<128x256xf32>, tensor<256x128xf32>
    %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%y : tensor<256x128xf32>) outs(%o : tensor<256x128xf32>) {
    ^bb0(%in: f32, %old: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<256x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0, 0] [256, 128] [1, 1] : tensor<256x128xf32> into tensor<256x128xf32>
    }
  }
  return %r : tensor<256x128xf32>
}

// nor where warpgroups lie side by side along outputs.

// CHECK-LABEL: func @one_token_group
// CHECK: nm_tile.matmul {{.*}} tokens_contiguous
func.func @one_token_group(%xs: tensor<32x128xf16>, %vs: tensor<32x256xf16>,
    %e: tensor<256x128xf32>, %out: tensor<256x128xf16>) -> tensor<256x128xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x256xf32>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<256x128xf16>) {
    %sum = nm_tile.matmul #w256 schedule = #by_outputs condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x256xf16>)
      acc(%zero : vector<128x256xf32>) -> vector<128x256xf32>
    %y = vector.transfer_write %sum, %e[%c0, %c0] {in_bounds = [true, true], permutation_map = #tr}
      : vector<128x256xf32>, tensor<256x128xf32>
    %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%y : tensor<256x128xf32>) outs(%o : tensor<256x128xf16>) {
    ^bb0(%in: f32, %old: f16):
      %1 = arith.truncf %in : f32 to f16
      linalg.yield %1 : f16
    } -> tensor<256x128xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %h into %o[0, 0] [256, 128] [1, 1] : tensor<256x128xf16> into tensor<256x128xf16>
    }
  }
  return %r : tensor<256x128xf16>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @not_elementwise(%xs: tensor<32x128xf16>, %vs: tensor<32x128xf16>,
                   %out: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<128x128xf32>) {
    %sum = nm_tile.matmul #w schedule = #s condensed
      ins(%xs, %vs : tensor<32x128xf16>, tensor<32x128xf16>)
      acc(%zero : vector<128x128xf32>) -> vector<128x128xf32>
    %y = vector.transfer_write %sum, %o[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf32>, tensor<128x128xf32>
    // expected-error @+1 {{'linalg.matmul' op in the CTA tile of a sparse matmul cannot become vector code}}
    %z = linalg.matmul ins(%y, %y : tensor<128x128xf32>, tensor<128x128xf32>) outs(%o : tensor<128x128xf32>) -> tensor<128x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[0, 0] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<128x128xf32>
    }
  }
  return %r : tensor<128x128xf32>
}
