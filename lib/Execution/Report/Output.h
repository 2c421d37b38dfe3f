//===- Output.h - results as files ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_REPORT_OUTPUT_H
#define NM_SPARSE_LIB_EXECUTION_REPORT_OUTPUT_H

#include "nm_sparse/Execution/Host/Array.h"
#include "nm_sparse/Execution/Request/RunReport.h"

namespace mlir::nm_sparse {

/// Writes each result to `prefix`.N.npy, a file of numpy, and lists them in
/// `report`. bf16, which numpy lacks, is written as its bits in uint16.
llvm::Error writeResults(StringRef prefix, ArrayRef<HostArray> results,
                         RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_REPORT_OUTPUT_H
