//===- TransposeCost.h - predicted time of a transposition ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a layout costs: the time of a transposition, and that of a product with
// its activations in either layout. It changes no IR.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_TRANSPOSECOST_H
#define NM_SPARSE_ANALYSIS_TRANSPOSECOST_H

#include "nm_sparse/Analysis/CostModel.h"
#include <optional>

namespace mlir::nm_sparse {

/// Whether consecutive tokens are neighbours in what `op`, and the elementwise
/// ops that alone consume its result, compute.
bool isWrittenFeatureMajor(MatmulOp op);

/// Whether that is of 16 bits, and computed from no other tensor of its shape,
/// so that warps can transpose it as they write it.
bool canBeTransposed(MatmulOp op);

/// Predicted time of the kernel that transposes a buffer of this type, whose
/// dynamic sizes are taken to be `dynamicExtent`.
double predictTranspose(ShapedType type, int64_t dynamicExtent,
                        const Chip &chip);

/// Predicted time of `problem` with its activations in the given layout, under
/// `given`, or under the best schedule where that is null. None when no
/// schedule fits.
std::optional<double> predictProduct(MatmulProblem problem, ScheduleAttr given,
                                     bool xFeatureMajor, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_TRANSPOSECOST_H
