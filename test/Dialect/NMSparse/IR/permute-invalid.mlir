// RUN: nm-opt %s --split-input-file --verify-diagnostics

func.func @type(%y: tensor<4x3xf32>, %p: tensor<3xi64>) {
  // expected-error @below {{'nm_sparse.permute' op perm must have elements of type i32, got 'tensor<3xi64>'}}
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<4x3xf32>, tensor<3xi64>
  return
}

// -----

func.func @rank(%y: tensor<4x3xf32>, %p: tensor<4x3xi32>) {
  // expected-error @below {{perm must have rank 1 without batch, got 'tensor<4x3xi32>'}}
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<4x3xf32>, tensor<4x3xi32>
  return
}

// -----

func.func @batch_rank(%y: tensor<4x3xf32>, %p: tensor<3xi32>) {
  // expected-error @below {{perm must have rank 2 with batch, got 'tensor<3xi32>'}}
  %0 = nm_sparse.permute %y, %p dim = 1 batch = 0 : tensor<4x3xf32>, tensor<3xi32>
  return
}

// -----

func.func @dim(%y: tensor<4x3xf32>, %p: tensor<3xi32>) {
  // expected-error @below {{dim = 2 is no dimension of 'tensor<4x3xf32>', legal are 0 to 1}}
  %0 = nm_sparse.permute %y, %p dim = 2 : tensor<4x3xf32>, tensor<3xi32>
  return
}

// -----

func.func @size(%y: tensor<4x3xf32>, %p: tensor<3xi32>) {
  // expected-error @below {{dimension 0 of 'tensor<4x3xf32>' has 4 entries, but perm has 3 in 'tensor<3xi32>'}}
  %0 = nm_sparse.permute %y, %p dim = 0 : tensor<4x3xf32>, tensor<3xi32>
  return
}

// -----

func.func @batch(%y: tensor<4x3xf32>, %p: tensor<4x3xi32>) {
  // expected-error @below {{batch = -1 is no dimension of 'tensor<4x3xf32>', legal are 0 to 1}}
  %0 = nm_sparse.permute %y, %p dim = 1 batch = -1 : tensor<4x3xf32>, tensor<4x3xi32>
  return
}

// -----

func.func @same(%y: tensor<3x3xf32>, %p: tensor<3x3xi32>) {
  // expected-error @below {{batch and dim must be two dimensions, got 1 for both}}
  %0 = nm_sparse.permute %y, %p dim = 1 batch = 1 : tensor<3x3xf32>, tensor<3x3xi32>
  return
}

// -----

func.func @batch_size(%y: tensor<4x3xf32>, %p: tensor<5x3xi32>) {
  // expected-error @below {{dimension 0 of 'tensor<4x3xf32>' has 4 entries, but perm has 5 in 'tensor<5x3xi32>'}}
  %0 = nm_sparse.permute %y, %p dim = 1 batch = 0 : tensor<4x3xf32>, tensor<5x3xi32>
  return
}
