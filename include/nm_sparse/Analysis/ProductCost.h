//===- ProductCost.h - what a product costs ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_PRODUCTCOST_H
#define NM_SPARSE_ANALYSIS_PRODUCTCOST_H

#include "nm_sparse/Analysis/CombineWork.h"
#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// Flops per second of a whole chip through one kind of unit.
struct MathCeiling {
  double flops;
  llvm::StringRef name;
};

/// Units that multiply. Lanes are those of the CUDA cores, too, of products
/// that decode or convert their operands first.
enum class MathUnit { TensorCores, SparseTensorCores, FFMA, Lanes };

struct MathUse {
  MathUnit unit;
  /// Rows that are multiplied for each output: those that the weight keeps, or
  /// all of the dense one, or the former several times.
  double rows;
  /// Lanes decode an element for the first token of a tile, and multiply it by
  /// the others as FFMA does.
  bool decodesOnce = false;
};

} // namespace mlir::nm_sparse

#include "nm_sparse/Analysis/ProductCost.h.inc"

namespace mlir::nm_sparse {

/// The cost interface of the product of `schedule`, which must have one.
ProductCostInterface getCost(ScheduleAttr schedule);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_PRODUCTCOST_H
