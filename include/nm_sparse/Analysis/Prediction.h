//===- Prediction.h - what the cost model says of a schedule ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_PREDICTION_H
#define NM_SPARSE_ANALYSIS_PREDICTION_H

#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// Predicted time of one schedule, in seconds, and what bounds it.
struct Prediction {
  double seconds;
  /// Predicted energy, and the time of a product that repeats for a second or
  /// more; 0 on a GPU whose energy nobody measured.
  double joules, sustained;
  int64_t ctas;
  int64_t sharedBytes;
  /// Name of the resource that is busy longest.
  llvm::StringRef bound;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_PREDICTION_H
