//===- KeptQuality.h - what a pattern keeps of a weight ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Advise.md defines the figures; python/nm_sparse/pruning/quality.py is
// their shortest implementation.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRUNINGQUALITY_KEPTQUALITY_H
#define NM_SPARSE_PRUNINGQUALITY_KEPTQUALITY_H

#include "nm_sparse/Base/Kind.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/PruningQuality/GramMatrix.h"

namespace mlir::nm_sparse {

/// A weight of outputs x inputs, at any address.
struct DenseWeight {
  llvm::ArrayRef<char> bytes;
  int64_t outputs, inputs;
  int32_t kind; ///< One of NmsKind.
};

struct KeptQuality {
  /// The share of the squares of all elements, each times the diagonal of the
  /// Gram matrix, that pruning keeps.
  double importance = 1;
  /// The least possible difference of the outputs, relative to their norm: that
  /// of the best values for the kept elements.
  double outputError = 0;
  /// The amount that was added to the diagonal to solve for them, relative to
  /// its mean.
  double ridge = 0;
};

/// `count` of the outputs, or all where there are not as many, in ascending
/// order. The same ones each time.
std::vector<int64_t> drawOutputs(int64_t outputs, int64_t count);

/// Prunes `weight` to `encoding`, of one or two levels with dim = 1, and fits
/// what is kept of the outputs `fitted`, which ascend. Without `gram`, inputs
/// are taken to be alike and independent: then there is nothing to fit, and the
/// error is that of all outputs. Elements must be finite.
llvm::Expected<KeptQuality> measureKept(const DenseWeight &weight,
                                        EncodingAttr encoding,
                                        const GramMatrix *gram,
                                        llvm::ArrayRef<int64_t> fitted);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PRUNINGQUALITY_KEPTQUALITY_H
