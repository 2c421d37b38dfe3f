//===- GramMatrix.h - which inputs of a layer go together -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRUNINGQUALITY_GRAMMATRIX_H
#define NM_SPARSE_PRUNINGQUALITY_GRAMMATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace mlir::nm_sparse {

/// G = X^T X of inputs X, tokens x inputs, in float64.
class GramMatrix {
public:
  /// Reads the tensor `name` of a safetensors file; the only one where the name
  /// is empty. It must be inputs x inputs, finite, and symmetric as far as sums
  /// in narrow types are; it becomes symmetric.
  static llvm::Expected<GramMatrix> read(llvm::StringRef path,
                                         llvm::StringRef name, int64_t inputs);

  int64_t getSize() const { return size; }
  llvm::ArrayRef<double> getRow(int64_t i) const {
    return llvm::ArrayRef(elements).slice(i * size, size);
  }
  double getMeanDiagonal() const;
  /// v^T G v, which is not below zero.
  double getSquare(llvm::ArrayRef<double> v) const;

private:
  int64_t size = 0;
  std::vector<double> elements;
};

/// Returns the dot product of two arrays of equal length.
double dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PRUNINGQUALITY_GRAMMATRIX_H
