// RUN: nm-opt %s --nm-sparse-lower-device-pack=where=device --split-input-file -verify-diagnostics | FileCheck %s --allow-empty
// RUN: not nm-opt %s --nm-sparse-lower-device-pack=where=gpu 2>&1 | FileCheck %s --check-prefix=WHERE
// RUN: not nm-opt %s --nm-sparse-lower-device-pack --split-input-file 2>&1 | FileCheck %s --check-prefix=AUTO
// AUTO: remark: packing is done on the host, which must be able to read the weight: no kernel does it, as the encoding has two levels
// AUTO: remark: packing is done on the host, {{.*}} as the encoding is shuffled
// AUTO: remark: packing is done on the host, {{.*}} as the encoding has windows of 65 blocks
// AUTO: remark: packing is done on the host, {{.*}} as the encoding is that of a weight whose shape is empty or not known
// AUTO: remark: packing is done on the host, {{.*}} as the encoding makes tiles of bitmaps that are larger than shared memory
// WHERE: where to pack must be auto, device or host, got 'gpu'
// CHECK-NOT: gpu.launch

#w = #nm_sparse.encoding<[2:3, block = [1, 2]], [1:2]>

func.func @two_levels(%w: tensor<3x2xf32>) -> (tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>) {
  // expected-error @below {{cannot be done by a kernel, as its encoding has two levels; legal is one n:m level with m up to 64, of a weight of static shape; others are packed on the host}}
  %v, %i, %j = nm_sparse.pack #w %w : tensor<3x2xf32> to tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>
  return %v, %i, %j : tensor<1x2xf32>, tensor<2x1xi8>, tensor<1x2xi8>
}

// -----

#s = #nm_sparse.encoding<1:2, order = shuffled>

func.func @shuffled(%w: tensor<4x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xi8>, tensor<1xi32>) {
  // expected-error @below {{as its encoding is shuffled; legal is one n:m level}}
  %v, %i, %p = nm_sparse.pack #s %w : tensor<4x1xf32> to tensor<2x1xf32>, tensor<2x1xi8>, tensor<1xi32>
  return %v, %i, %p : tensor<2x1xf32>, tensor<2x1xi8>, tensor<1xi32>
}

// -----

#l = #nm_sparse.encoding<1:65>

func.func @long_windows(%w: tensor<65x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xi8>) {
  // expected-error @below {{as its encoding has windows of 65 blocks}}
  %v, %i = nm_sparse.pack #l %w : tensor<65x1xf32> to tensor<1x1xf32>, tensor<1x1xi8>
  return %v, %i : tensor<1x1xf32>, tensor<1x1xi8>
}

// -----

#e = #nm_sparse.encoding<1:2>

func.func @empty(%w: tensor<4x0xf32>) -> (tensor<2x0xf32>, tensor<2x0xi8>) {
  // expected-error @below {{as its encoding is that of a weight whose shape is empty or not known}}
  %v, %i = nm_sparse.pack #e %w : tensor<4x0xf32> to tensor<2x0xf32>, tensor<2x0xi8>
  return %v, %i : tensor<2x0xf32>, tensor<2x0xi8>
}

// -----

#p = #nm_sparse.encoding<1:2>

func.func @encoded(%w: tensor<4x1xf32, #p>) -> (tensor<2x1xf32>, tensor<2x1xi8>) {
  // expected-error @below {{has a type with an encoding; run --nm-sparse-materialize-encodings first}}
  %v, %i = nm_sparse.pack #p %w : tensor<4x1xf32, #p> to tensor<2x1xf32>, tensor<2x1xi8>
  return %v, %i : tensor<2x1xf32>, tensor<2x1xi8>
}

// -----

#t = #nm_sparse.encoding<11:33, block = [1, 31]>

func.func @large_bitmaps(%w: tensor<33x31xf32>) -> (tensor<1x1x5632xf32>, tensor<1x1x544xi32>) {
  // expected-error @below {{as its encoding makes tiles of bitmaps that are larger than shared memory}}
  %v, %b = nm_sparse.pack #t storage = #nm_sparse.bitmap<#t> %w
    : tensor<33x31xf32> to tensor<1x1x5632xf32>, tensor<1x1x544xi32>
  return %v, %b : tensor<1x1x5632xf32>, tensor<1x1x544xi32>
}
