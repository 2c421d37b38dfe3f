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

/// Whether warps can transpose the tiles that a product writes as `writes`
/// tensors with elements of `bits` bits, where it `reads` other tensors of
/// their shape or does not. What is read lies in the order in which it is
/// written.
inline bool canBeTransposed(int64_t writes, unsigned bits, bool reads) {
  return writes == 1 && bits == 16 && !reads;
}

/// Whether warps can transpose what `op`, and the elementwise ops that alone
/// consume its result, compute.
bool canBeTransposed(MatmulOp op);

/// What is done for each element that `op`, and the elementwise ops that alone
/// consume its result, compute. `dynamicExtent` stands for sizes that are not
/// known.
Epilogue getEpilogue(MatmulOp op, int64_t dynamicExtent);

/// Predicted time of the kernel that transposes a buffer of this type, whose
/// dynamic sizes are taken to be `dynamicExtent`.
double predictTranspose(ShapedType type, int64_t dynamicExtent,
                        const Chip &chip);
/// The same of so many bytes.
double predictTranspose(double bytes, const Chip &chip);

/// Predicted time of the kernel that computes x, the patches of an image.
double predictPatches(const MatmulProblem &problem, const Chip &chip);

/// Predicted time of the kernel that copies the rows of such a buffer to where
/// they are aligned.
double predictRowCopy(ShapedType type, int64_t dynamicExtent, const Chip &chip);

/// Bytes of a buffer of this type.
double countBytes(ShapedType type, int64_t dynamicExtent);

/// Predicted time and energy of `problem` with its activations in the given
/// layout, under `given`, or under the schedule that `objective` chooses where
/// that is null. None when no schedule fits.
std::optional<Prediction> predictInLayout(MatmulProblem problem,
                                          ScheduleAttr given,
                                          bool xFeatureMajor, const Chip &chip,
                                          Objective objective);

/// The time alone, of the schedule that takes least of it.
std::optional<double> predictProduct(MatmulProblem problem, ScheduleAttr given,
                                     bool xFeatureMajor, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_TRANSPOSECOST_H
