//===- TunedSchedules.h - schedules that were measured ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TUNEDSCHEDULES_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TUNEDSCHEDULES_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Tuning/TuningDatabase.h"

namespace mlir::nm_sparse {

/// Reads the entries of `files` that are of the sizes of products in `module`.
llvm::Error readTuned(ModuleOp module, ArrayRef<std::string> files,
                      TuningDatabase &database);

/// Gives each product in `module` that has no schedule the one of `database`
/// for its problem on `target`, if that is legal; else warns. `tokens` is the
/// number to assume where it is dynamic.
void applyTuned(ModuleOp module, const TuningDatabase &database,
                const Chip &target, Objective objective, int64_t tokens);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TUNEDSCHEDULES_H
