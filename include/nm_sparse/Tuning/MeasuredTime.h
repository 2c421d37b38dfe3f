//===- MeasuredTime.h - the time of a schedule that was measured -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNING_MEASUREDTIME_H
#define NM_SPARSE_TUNING_MEASUREDTIME_H

#include "nm_sparse/Tuning/TuningDatabase.h"

namespace mlir::nm_sparse {

/// The time that a database has for a product with the schedule that it got
/// from there, and that is said with the product.
struct MeasuredTime {
  double seconds = 0;
  double dense = 0;   ///< Seconds of the dense product; 0: not measured.
  int64_t tokens = 0; ///< The number that it was measured for.

  static void set(MatmulOp op, const TunedEntry &entry);
  static std::optional<MeasuredTime> get(MatmulOp op);
  /// The time for so many tokens; none where others were measured, or none.
  static std::optional<MeasuredTime> get(MatmulOp op, int64_t tokens);
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNING_MEASUREDTIME_H
