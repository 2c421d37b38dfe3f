//===- Bench.h - time recorded launches -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_REPORT_BENCH_H
#define NM_SPARSE_LIB_EXECUTION_REPORT_BENCH_H

#include "nm_sparse/Execution/Host/CompiledModule.h"
#include "nm_sparse/Execution/Request/RunReport.h"
#include "nm_sparse/Execution/Request/RunRequest.h"

namespace mlir::nm_sparse {

/// One sparse product, as the dense one that it replaces.
struct Product {
  int32_t kind;
  int64_t batch, m, n, k;
};

/// The sparse products of `module` with every dynamic size `dynamicSize`.
llvm::Expected<SmallVector<Product>> findProducts(ModuleOp module,
                                                  int64_t dynamicSize);

/// Calls of the function to record, each with buffers of its own, so that what
/// one reads is gone from the L2 cache before its turn comes again. `arguments`
/// are those of the function.
int64_t getNumSets(ArrayRef<Product> products, ArrayRef<Argument> arguments);

/// The library with a dense product of `kind`, and the types of its matrices
/// where they are not all the same: "cuBLASLt dense (f8E4M3FN x f8E4M3FN =
/// bf16)".
std::string getDenseName(int32_t kind);

/// Times the launches recorded in `sets` calls, and cuBLAS on `products`.
/// `budget` is in milliseconds, 0 for none.
llvm::Error benchRecorded(ArrayRef<Product> products, int64_t sets,
                          int64_t budget, RunReport &report);

/// Measures the energy of the launches recorded in `sets` calls, and of the
/// dense product where `report` says how fast cuBLAS is.
llvm::Error measureEnergy(ArrayRef<Product> products, int64_t sets,
                          const RunRequest &request, RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_REPORT_BENCH_H
