//===- Check.h - compare results with the reference -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_REPORT_CHECK_H
#define NM_SPARSE_LIB_EXECUTION_REPORT_CHECK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Execution/Host/Array.h"
#include "nm_sparse/Execution/Request/RunReport.h"

namespace mlir::nm_sparse {

/// The relative Frobenius error to allow in each result of `entry`: that of the
/// narrowest float type that it, or what it is computed from in `entry`, is
/// rounded to. Arguments count as exact.
SmallVector<double> getDefaultTolerances(func::FuncOp entry);

/// Compares `results` with `want`, whose elements are f64 or integers, and adds
/// what comes out to `report`. There is a tolerance for each result.
llvm::Error compareResults(ArrayRef<HostArray> results,
                           ArrayRef<HostArray> want,
                           ArrayRef<double> tolerances, RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_REPORT_CHECK_H
