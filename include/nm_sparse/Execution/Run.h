//===- Run.h - compile, run, check and time one function --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of nm-run for one input: seeded inputs that follow the declared
// pattern, one execution through the compiler, one through the float64
// reference, and a comparison.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_RUN_H
#define NM_SPARSE_EXECUTION_RUN_H

#include "nm_sparse/Execution/Request/RunReport.h"
#include "nm_sparse/Execution/Request/RunRequest.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// Runs `request`. An error is one sentence that says what is wrong with the
/// input or the machine.
llvm::Expected<RunReport> run(const RunRequest &request);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_RUN_H
