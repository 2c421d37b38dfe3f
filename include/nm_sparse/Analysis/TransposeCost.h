//===- TransposeCost.h - times of kernels before a product ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_TRANSPOSECOST_H
#define NM_SPARSE_ANALYSIS_TRANSPOSECOST_H

#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// Predicted time of the kernel that transposes a buffer of this type, whose
/// dynamic sizes are taken to be `dynamicExtent`.
double predictTranspose(ShapedType type, int64_t dynamicExtent,
                        const Chip &chip);
/// The same of so many bytes.
double predictTranspose(double bytes, const Chip &chip);

/// Bytes of what `op` transposes where products have so many tokens: an image
/// has as many entries as give its patches those.
double countTransposed(Operation *op, int64_t tokens);

/// Predicted time of the kernel that computes x, the patches of an image.
double predictPatches(const MatmulProblem &problem, const Chip &chip);

/// Predicted time of the kernel that copies the rows of such a buffer to where
/// they are aligned.
double predictRowCopy(ShapedType type, int64_t dynamicExtent, const Chip &chip);

/// Bytes of a buffer of this type.
double countBytes(ShapedType type, int64_t dynamicExtent);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_TRANSPOSECOST_H
