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

/// What it takes that the CTAs of a cluster share tiles.
struct ClusterCosts {
  /// Seconds to meet twice, and to hand over and add up an element of a tile.
  double meet, element;
  /// Clusters of 2, 3, ... 8 CTAs, one on an SM each, that run at once on
  /// `multiprocessors`: a cluster is inside one group of SMs.
  int64_t running[7], multiprocessors;
};
const ClusterCosts &getClusterCosts(const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTTABLE_H
