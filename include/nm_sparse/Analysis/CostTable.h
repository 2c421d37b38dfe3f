//===- CostTable.h - fitted constants of the cost model ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fitted, not derived, numbers of the cost model: "costs" in the table of a
// GPU (share/nm_sparse/gpus). bench/fit.py makes them from measured kernels.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COSTTABLE_H
#define NM_SPARSE_ANALYSIS_COSTTABLE_H

#include "nm_sparse/Analysis/CombineDense.h"
#include "nm_sparse/Analysis/CombineWork.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// The table of `chip` has costs of its own, or names a GPU that has: clocks
/// are taken to be alike, and the rates are its own.
const SharedCosts &getSharedCosts(const Chip &chip);

/// The costs of a family of kernels, which ProductCostInterface::getFamily
/// names.
const ProductCosts &getProductCosts(llvm::StringRef family, const Chip &chip);

/// The costs of the vendor's dense products, on tensor cores or on others.
const DenseCosts &getDenseCosts(bool onTensorCores, const Chip &chip);

/// Clusters of so many CTAs, one on an SM each, that run at once: a cluster is
/// inside one group of SMs, which need not be full of them.
int64_t getRunningClusters(int64_t ctas, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTTABLE_H
