// RUN: nm-run %s --entry split --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry scaled --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry residuals --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry returned --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry twice --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry shared --device emulate --check | FileCheck %s
// CHECK: PASS
// CHECK-NOT: FAIL

// Programs that take the pixels of a convolution apart in other ways than NHWC
// images do, and ones in which several products write images of one shape.

#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 0>

// Rows of 112 pixels and images together.
func.func @split(%x: tensor<16x7x7x64xf16>, %w: tensor<3x3x64x64xf16, #w>) -> tensor<112x7x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %xe0 = tensor.empty() : tensor<64x7x7x16xf16>
  %xt = linalg.transpose ins(%x : tensor<16x7x7x64xf16>) outs(%xe0 : tensor<64x7x7x16xf16>) permutation = [3,1,2,0]
  %p = tensor.pad %xt low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<64x7x7x16xf16> to tensor<64x9x9x16xf16>
  %e = tensor.empty() : tensor<64x7x7x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7x7x16xf32>) -> tensor<64x7x7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(f,p,q,b,c,r,s)->(c,p+r,q+s,b)>, affine_map<(f,p,q,b,c,r,s)->(r,s,c,f)>, affine_map<(f,p,q,b,c,r,s)->(f,p,q,b)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p, %w : tensor<64x9x9x16xf16>, tensor<3x3x64x64xf16, #w>) outs(%z : tensor<64x7x7x16xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xx = arith.extf %xi : f16 to f32
    %ww = arith.extf %wi : f16 to f32
    %m = arith.mulf %xx, %ww : f32
    %s0 = arith.addf %yi, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<64x7x7x16xf32>
  %c = tensor.collapse_shape %y [[0],[1],[2,3]] : tensor<64x7x7x16xf32> into tensor<64x7x112xf32>
  %te = tensor.empty() : tensor<112x7x64xf32>
  %t = linalg.transpose ins(%c : tensor<64x7x112xf32>) outs(%te : tensor<112x7x64xf32>) permutation = [2,1,0]
  return %t : tensor<112x7x64xf32>
}

// A scale of each pixel of each image.
func.func @scaled(%x: tensor<16x7x7x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %k: tensor<784xf32>) -> tensor<16x49x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %xe0 = tensor.empty() : tensor<64x7x7x16xf16>
  %xt = linalg.transpose ins(%x : tensor<16x7x7x64xf16>) outs(%xe0 : tensor<64x7x7x16xf16>) permutation = [3,1,2,0]
  %p = tensor.pad %xt low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<64x7x7x16xf16> to tensor<64x9x9x16xf16>
  %e = tensor.empty() : tensor<64x7x7x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7x7x16xf32>) -> tensor<64x7x7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(f,p,q,b,c,r,s)->(c,p+r,q+s,b)>, affine_map<(f,p,q,b,c,r,s)->(r,s,c,f)>, affine_map<(f,p,q,b,c,r,s)->(f,p,q,b)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p, %w : tensor<64x9x9x16xf16>, tensor<3x3x64x64xf16, #w>) outs(%z : tensor<64x7x7x16xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xx = arith.extf %xi : f16 to f32
    %ww = arith.extf %wi : f16 to f32
    %m = arith.mulf %xx, %ww : f32
    %s0 = arith.addf %yi, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<64x7x7x16xf32>
  %c = tensor.collapse_shape %y [[0],[1,2,3]] : tensor<64x7x7x16xf32> into tensor<64x784xf32>
  %ge = tensor.empty() : tensor<64x784xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>,affine_map<(a,b)->(b)>,affine_map<(a,b)->(a,b)>], iterator_types = ["parallel","parallel"]} ins(%c, %k : tensor<64x784xf32>, tensor<784xf32>) outs(%ge : tensor<64x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x784xf32>
  %v = tensor.expand_shape %g [[0],[1,2]] output_shape [64,49,16] : tensor<64x784xf32> into tensor<64x49x16xf32>
  %te = tensor.empty() : tensor<16x49x64xf32>
  %t = linalg.transpose ins(%v : tensor<64x49x16xf32>) outs(%te : tensor<16x49x64xf32>) permutation = [2,1,0]
  return %t : tensor<16x49x64xf32>
}

// A residual of other groups of pixels.
func.func @residuals(%x: tensor<16x7x7x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %r: tensor<8x98x64xf32>) -> tensor<16x49x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %xe0 = tensor.empty() : tensor<64x7x7x16xf16>
  %xt = linalg.transpose ins(%x : tensor<16x7x7x64xf16>) outs(%xe0 : tensor<64x7x7x16xf16>) permutation = [3,1,2,0]
  %p = tensor.pad %xt low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<64x7x7x16xf16> to tensor<64x9x9x16xf16>
  %e = tensor.empty() : tensor<64x7x7x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7x7x16xf32>) -> tensor<64x7x7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(f,p,q,b,c,r,s)->(c,p+r,q+s,b)>, affine_map<(f,p,q,b,c,r,s)->(r,s,c,f)>, affine_map<(f,p,q,b,c,r,s)->(f,p,q,b)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p, %w : tensor<64x9x9x16xf16>, tensor<3x3x64x64xf16, #w>) outs(%z : tensor<64x7x7x16xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xx = arith.extf %xi : f16 to f32
    %ww = arith.extf %wi : f16 to f32
    %m = arith.mulf %xx, %ww : f32
    %s0 = arith.addf %yi, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<64x7x7x16xf32>
  %c = tensor.collapse_shape %y [[0],[1,2,3]] : tensor<64x7x7x16xf32> into tensor<64x784xf32>
  %re = tensor.empty() : tensor<98x8x64xf32>
  %rt = linalg.transpose ins(%r : tensor<8x98x64xf32>) outs(%re : tensor<98x8x64xf32>) permutation = [1,0,2]
  %rc = tensor.collapse_shape %rt [[0,1],[2]] : tensor<98x8x64xf32> into tensor<784x64xf32>
  %ge = tensor.empty() : tensor<64x784xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>,affine_map<(a,b)->(b,a)>,affine_map<(a,b)->(a,b)>], iterator_types = ["parallel","parallel"]} ins(%c, %rc : tensor<64x784xf32>, tensor<784x64xf32>) outs(%ge : tensor<64x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x784xf32>
  %v = tensor.expand_shape %g [[0],[1,2]] output_shape [64,49,16] : tensor<64x784xf32> into tensor<64x49x16xf32>
  %te = tensor.empty() : tensor<16x49x64xf32>
  %t = linalg.transpose ins(%v : tensor<64x49x16xf32>) outs(%te : tensor<16x49x64xf32>) permutation = [2,1,0]
  return %t : tensor<16x49x64xf32>
}

// Rows in turns that are returned, too.
func.func @returned(%x: tensor<16x7x7x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %r: tensor<16x49x64xf32>) -> (tensor<16x49x64xf32>, tensor<784x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %xe0 = tensor.empty() : tensor<64x7x7x16xf16>
  %xt = linalg.transpose ins(%x : tensor<16x7x7x64xf16>) outs(%xe0 : tensor<64x7x7x16xf16>) permutation = [3,1,2,0]
  %p = tensor.pad %xt low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<64x7x7x16xf16> to tensor<64x9x9x16xf16>
  %e = tensor.empty() : tensor<64x7x7x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7x7x16xf32>) -> tensor<64x7x7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(f,p,q,b,c,r,s)->(c,p+r,q+s,b)>, affine_map<(f,p,q,b,c,r,s)->(r,s,c,f)>, affine_map<(f,p,q,b,c,r,s)->(f,p,q,b)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p, %w : tensor<64x9x9x16xf16>, tensor<3x3x64x64xf16, #w>) outs(%z : tensor<64x7x7x16xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xx = arith.extf %xi : f16 to f32
    %ww = arith.extf %wi : f16 to f32
    %m = arith.mulf %xx, %ww : f32
    %s0 = arith.addf %yi, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<64x7x7x16xf32>
  %c = tensor.collapse_shape %y [[0],[1,2,3]] : tensor<64x7x7x16xf32> into tensor<64x784xf32>
  %re = tensor.empty() : tensor<49x16x64xf32>
  %rt = linalg.transpose ins(%r : tensor<16x49x64xf32>) outs(%re : tensor<49x16x64xf32>) permutation = [1,0,2]
  %rc = tensor.collapse_shape %rt [[0,1],[2]] : tensor<49x16x64xf32> into tensor<784x64xf32>
  %ge = tensor.empty() : tensor<64x784xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>,affine_map<(a,b)->(b,a)>,affine_map<(a,b)->(a,b)>], iterator_types = ["parallel","parallel"]} ins(%c, %rc : tensor<64x784xf32>, tensor<784x64xf32>) outs(%ge : tensor<64x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x784xf32>
  %v = tensor.expand_shape %g [[0],[1,2]] output_shape [64,49,16] : tensor<64x784xf32> into tensor<64x49x16xf32>
  %te = tensor.empty() : tensor<16x49x64xf32>
  %t = linalg.transpose ins(%v : tensor<64x49x16xf32>) outs(%te : tensor<16x49x64xf32>) permutation = [2,1,0]
  return %t, %rc : tensor<16x49x64xf32>, tensor<784x64xf32>
}

// Rows in turns that two operations read.
func.func @twice(%x: tensor<16x7x7x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %r: tensor<16x49x64xf32>) -> tensor<16x49x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %xe0 = tensor.empty() : tensor<64x7x7x16xf16>
  %xt = linalg.transpose ins(%x : tensor<16x7x7x64xf16>) outs(%xe0 : tensor<64x7x7x16xf16>) permutation = [3,1,2,0]
  %p = tensor.pad %xt low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<64x7x7x16xf16> to tensor<64x9x9x16xf16>
  %e = tensor.empty() : tensor<64x7x7x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7x7x16xf32>) -> tensor<64x7x7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(f,p,q,b,c,r,s)->(c,p+r,q+s,b)>, affine_map<(f,p,q,b,c,r,s)->(r,s,c,f)>, affine_map<(f,p,q,b,c,r,s)->(f,p,q,b)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p, %w : tensor<64x9x9x16xf16>, tensor<3x3x64x64xf16, #w>) outs(%z : tensor<64x7x7x16xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xx = arith.extf %xi : f16 to f32
    %ww = arith.extf %wi : f16 to f32
    %m = arith.mulf %xx, %ww : f32
    %s0 = arith.addf %yi, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<64x7x7x16xf32>
  %c = tensor.collapse_shape %y [[0],[1,2,3]] : tensor<64x7x7x16xf32> into tensor<64x784xf32>
  %re = tensor.empty() : tensor<49x16x64xf32>
  %rt = linalg.transpose ins(%r : tensor<16x49x64xf32>) outs(%re : tensor<49x16x64xf32>) permutation = [1,0,2]
  %rc = tensor.collapse_shape %rt [[0,1],[2]] : tensor<49x16x64xf32> into tensor<784x64xf32>
  %ge = tensor.empty() : tensor<64x784xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>,affine_map<(a,b)->(b,a)>,affine_map<(a,b)->(a,b)>], iterator_types = ["parallel","parallel"]} ins(%c, %rc : tensor<64x784xf32>, tensor<784x64xf32>) outs(%ge : tensor<64x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x784xf32>
  %ge2 = tensor.empty() : tensor<64x784xf32>
  %g2 = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>,affine_map<(a,b)->(b,a)>,affine_map<(a,b)->(a,b)>], iterator_types = ["parallel","parallel"]} ins(%g, %rc : tensor<64x784xf32>, tensor<784x64xf32>) outs(%ge2 : tensor<64x784xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.maximumf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x784xf32>
  %v = tensor.expand_shape %g2 [[0],[1,2]] output_shape [64,49,16] : tensor<64x784xf32> into tensor<64x49x16xf32>
  %te = tensor.empty() : tensor<16x49x64xf32>
  %t = linalg.transpose ins(%v : tensor<64x49x16xf32>) outs(%te : tensor<16x49x64xf32>) permutation = [2,1,0]
  return %t : tensor<16x49x64xf32>
}

// Two results of one shape.
func.func @shared(%x: tensor<16x7x7x64xf16>, %w1: tensor<3x3x64x64xf16, #w>, %w2: tensor<3x3x64x64xf16, #w>) -> (tensor<16x7x7x64xf16>, tensor<16x7x7x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %zx = arith.constant 0.0 : f16
  %p1 = tensor.pad %x low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<16x7x7x64xf16> to tensor<16x9x9x64xf16>
  %e1 = tensor.empty() : tensor<16x7x7x64xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x7x7x64xf32>) -> tensor<16x7x7x64xf32>
  %y1 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%p1, %w1 : tensor<16x9x9x64xf16>, tensor<3x3x64x64xf16, #w>) outs(%z1 : tensor<16x7x7x64xf32>) -> tensor<16x7x7x64xf32>
  %oe1 = tensor.empty() : tensor<16x7x7x64xf16>
  %o1 = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>,affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%y1 : tensor<16x7x7x64xf32>) outs(%oe1 : tensor<16x7x7x64xf16>) {
  ^bb0(%v0: f32, %old: f16):
    %s = arith.maximumf %v0, %zero : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<16x7x7x64xf16>
  %p2 = tensor.pad %x low[0,1,1,0] high[0,1,1,0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zx : f16
  } : tensor<16x7x7x64xf16> to tensor<16x9x9x64xf16>
  %e2 = tensor.empty() : tensor<16x7x7x64xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<16x7x7x64xf32>) -> tensor<16x7x7x64xf32>
  %y2 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%p2, %w2 : tensor<16x9x9x64xf16>, tensor<3x3x64x64xf16, #w>) outs(%z2 : tensor<16x7x7x64xf32>) -> tensor<16x7x7x64xf32>
  %oe2 = tensor.empty() : tensor<16x7x7x64xf16>
  %o2 = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>,affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%y2 : tensor<16x7x7x64xf32>) outs(%oe2 : tensor<16x7x7x64xf16>) {
  ^bb0(%v0: f32, %old: f16):
    %s = arith.maximumf %v0, %zero : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<16x7x7x64xf16>
  return %o1, %o2 : tensor<16x7x7x64xf16>, tensor<16x7x7x64xf16>
}
