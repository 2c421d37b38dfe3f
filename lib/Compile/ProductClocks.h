//===- ProductClocks.h - clocks that a product's time goes with -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_PRODUCTCLOCKS_H
#define NM_SPARSE_LIB_COMPILE_PRODUCTCLOCKS_H

#include "nm_sparse/Analysis/PredictClocks.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {

/// Which clock the time of a product goes with, which takes `seconds` with its
/// share of the kernel before it.
ClockParts findClockParts(const MatmulProblem &problem, ScheduleAttr schedule,
                          double seconds, const Chip &chip);
/// As sweeps have it.
llvm::json::Value toJSON(const ClockParts &parts);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_PRODUCTCLOCKS_H
