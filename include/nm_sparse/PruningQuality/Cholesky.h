//===- Cholesky.h - solve positive definite systems -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRUNINGQUALITY_CHOLESKY_H
#define NM_SPARSE_PRUNINGQUALITY_CHOLESKY_H

#include "llvm/ADT/ArrayRef.h"

namespace mlir::nm_sparse {

/// Factors a symmetric matrix A = U^T U, of which the upper triangle is read
/// and replaced by U. `a` has n rows of n elements. False when A is not
/// positive definite, as far as float64 tells; `a` is then spoilt.
bool factorCholesky(llvm::MutableArrayRef<double> a, int64_t n);

/// Replaces b by the solution of A x = b, of the U that was made of A.
void solveCholesky(llvm::ArrayRef<double> u, int64_t n,
                   llvm::MutableArrayRef<double> b);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PRUNINGQUALITY_CHOLESKY_H
