//===- Bench.h - time recorded launches -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_BENCH_H
#define NM_SPARSE_LIB_EXECUTION_BENCH_H

#include "nm_sparse/Execution/Run.h"

namespace mlir::nm_sparse {

/// One sparse product, as the dense one that it replaces.
struct Product {
  int32_t kind;
  int64_t batch, m, n, k;
};

/// The sparse products of `module` with every dynamic size `dynamicSize`.
llvm::Expected<SmallVector<Product>> findProducts(ModuleOp module,
                                                  int64_t dynamicSize);

/// Times the recorded launches, and cuBLAS on `products`.
llvm::Error benchRecorded(ArrayRef<Product> products, RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_BENCH_H
