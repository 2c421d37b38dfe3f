//===- Objective.h - what schedules are compared by -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_OBJECTIVE_H
#define NM_SPARSE_ANALYSIS_OBJECTIVE_H

#include "nm_sparse/Analysis/Prediction.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// The measure by which schedules are compared: seconds, joules, or their
/// product.
enum class Objective { Time, Energy, EDP };

double getScore(const Prediction &prediction, Objective objective);

/// The word for it: time, energy or edp.
llvm::StringRef getName(Objective objective);

/// The objective called `text`; fails if it needs the energy of `chip`, which
/// nobody measured.
llvm::Expected<Objective> parseObjective(llvm::StringRef text,
                                         const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_OBJECTIVE_H
