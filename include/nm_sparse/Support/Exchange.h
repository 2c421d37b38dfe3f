//===- Exchange.h - permutations that exchange dimensions -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_EXCHANGE_H
#define NM_SPARSE_SUPPORT_EXCHANGE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::nm_sparse {

/// The permutation of `rank` dimensions that exchanges `dim` with the last.
inline SmallVector<int64_t> getExchange(int64_t rank, int64_t dim) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[dim], permutation[rank - 1]);
  return permutation;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_EXCHANGE_H
