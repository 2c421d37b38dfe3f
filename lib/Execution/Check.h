//===- Check.h - compare results with the reference -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_CHECK_H
#define NM_SPARSE_LIB_EXECUTION_CHECK_H

#include "nm_sparse/Execution/Array.h"
#include "nm_sparse/Execution/Run.h"

namespace mlir::nm_sparse {

/// Compares `results` with `want`, in float64, and adds what comes out to
/// `report`. A negative `tolerance` means that of each result's type.
llvm::Error compareResults(ArrayRef<HostArray> results,
                           ArrayRef<HostArray> want, double tolerance,
                           RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_CHECK_H
