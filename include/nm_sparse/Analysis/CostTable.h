//===- CostTable.h - fitted constants of the cost model ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fitted, not derived, parameters of the cost model; the values of each
// family of kernels are with its product, in lib/Products. bench/fit_model.py
// compares them with recorded times and proposes new ones.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COSTTABLE_H
#define NM_SPARSE_ANALYSIS_COSTTABLE_H

#include "nm_sparse/Analysis/CombineTerms.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

const SharedCosts &getSharedCosts(const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTTABLE_H
