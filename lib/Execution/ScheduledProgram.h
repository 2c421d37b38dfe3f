//===- ScheduledProgram.h - a program under a given schedule ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_SCHEDULEDPROGRAM_H
#define NM_SPARSE_LIB_EXECUTION_SCHEDULEDPROGRAM_H

#include "Lowering/Lowering.h"

namespace mlir::nm_sparse {

/// A program in a context of its own, so that several are compiled side by
/// side.
class ScheduledProgram {
public:
  explicit ScheduledProgram(const RunRequest &request);

  /// Lowers the program of `request`, whose products get the schedule once
  /// layouts are chosen. `format` is as lowerForGPU has it. What is lowered
  /// lives as long as this. An error where another schedule would be taken.
  llvm::Expected<Lowered> lower(RunRequest request, StringRef chip,
                                StringRef gpu, StringRef schedule,
                                StringRef format);

private:
  MLIRContext context;
};

/// 16 digits that the kernels in `module` have, and those of other code, most
/// likely, have not.
std::string hashKernels(ModuleOp module);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_SCHEDULEDPROGRAM_H
