// Conversions of 8-bit floats, which LLVM does not know, against tables that are
// made otherwise: of all 256 numbers, and to these of floats between and beside
// them, ties, infinities and NaNs.
//
// RUN: nm-run %s --entry widen_e4m3 --device cpu --output %t.e4m3.wide
// RUN: nm-run %s --entry widen_e5m2 --device cpu --output %t.e5m2.wide
// RUN: nm-run %s --entry round_e4m3 --device cpu --output %t.e4m3.round
// RUN: nm-run %s --entry round_e5m2 --device cpu --output %t.e5m2.round
// RUN: %python %S/Inputs/float8.py e4m3 %t.e4m3.wide.0.npy %t.e4m3.round.0.npy | FileCheck %s
// RUN: %python %S/Inputs/float8.py e5m2 %t.e5m2.wide.0.npy %t.e5m2.round.0.npy | FileCheck %s
// RUN: nm-run %s --entry round_twice --device cpu --output %t.twice
// RUN: %python -c "import numpy, sys; print(*numpy.load(sys.argv[1]))" %t.twice.0.npy | FileCheck %s --check-prefix=TWICE
// TWICE: 56 57 57 58 -71 127
// CHECK: 256 of 256 widened, 262144 of 262144 rounded

#map = affine_map<(i) -> (i)>

func.func @widen_e4m3(%out: tensor<256xf32>) -> tensor<256xf32> {
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%out : tensor<256xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %bits = arith.index_cast %i : index to i8
    %x = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %x : f8E4M3FN to f32
    linalg.yield %y : f32
  } -> tensor<256xf32>
  return %r : tensor<256xf32>
}

func.func @widen_e5m2(%out: tensor<256xf32>) -> tensor<256xf32> {
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%out : tensor<256xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %bits = arith.index_cast %i : index to i8
    %x = arith.bitcast %bits : i8 to f8E5M2
    %y = arith.extf %x : f8E5M2 to f32
    linalg.yield %y : f32
  } -> tensor<256xf32>
  return %r : tensor<256xf32>
}

// Floats with all upper halves, and lower ones of 0, just below a half, a half
// and just above it.
func.func @round_e4m3(%out: tensor<262144xi8>) -> tensor<262144xi8> {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%out : tensor<262144xi8>) {
  ^bb0(%o: i8):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %upper = arith.shrui %n, %c2 : i32
    %which = arith.andi %n, %c3 : i32
    %shift = arith.constant 16 : i32
    %high = arith.shli %upper, %shift : i32
    %table = arith.constant dense<[0, 32767, 32768, 32769]> : vector<4xi32>
    %at = arith.index_cast %which : i32 to index
    %low = vector.extract %table[%at] : i32 from vector<4xi32>
    %bits = arith.ori %high, %low : i32
    %x = arith.bitcast %bits : i32 to f32
    %y = arith.truncf %x : f32 to f8E4M3FN
    %byte = arith.bitcast %y : f8E4M3FN to i8
    linalg.yield %byte : i8
  } -> tensor<262144xi8>
  return %r : tensor<262144xi8>
}

func.func @round_e5m2(%out: tensor<262144xi8>) -> tensor<262144xi8> {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%out : tensor<262144xi8>) {
  ^bb0(%o: i8):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %upper = arith.shrui %n, %c2 : i32
    %which = arith.andi %n, %c3 : i32
    %shift = arith.constant 16 : i32
    %high = arith.shli %upper, %shift : i32
    %table = arith.constant dense<[0, 32767, 32768, 32769]> : vector<4xi32>
    %at = arith.index_cast %which : i32 to index
    %low = vector.extract %table[%at] : i32 from vector<4xi32>
    %bits = arith.ori %high, %low : i32
    %x = arith.bitcast %bits : i32 to f32
    %y = arith.truncf %x : f32 to f8E5M2
    %byte = arith.bitcast %y : f8E5M2 to i8
    linalg.yield %byte : i8
  } -> tensor<262144xi8>
  return %r : tensor<262144xi8>
}

// Conversion from f64: ties, numbers so near that f32 rounds them to ties, an overflow.
func.func @round_twice(%out: tensor<6xi8>) -> tensor<6xi8> {
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%out : tensor<6xi8>) {
  ^bb0(%o: i8):
    %i = linalg.index 0 : index
    %table = arith.constant dense<[1.0625, 1.0625000000001, 1.1874999999999, 1.1875, -1.0625000000001, 1.0e300]> : vector<6xf64>
    %x = vector.extract %table[%i] : f64 from vector<6xf64>
    %y = arith.truncf %x : f64 to f8E4M3FN
    %byte = arith.bitcast %y : f8E4M3FN to i8
    linalg.yield %byte : i8
  } -> tensor<6xi8>
  return %r : tensor<6xi8>
}
