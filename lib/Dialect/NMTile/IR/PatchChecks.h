//===- PatchChecks.h - what is legal of patches of an image -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_IR_PATCHCHECKS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_IR_PATCHCHECKS_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// A slice of the matrix of patches is four numbers; without patches there is
/// none.
LogicalResult verifySliceSize(Operation *op, std::optional<PatchesAttr> patches,
                              size_t numbers);

/// Where a pixel lies is known but for the image of the batch that it is in.
LogicalResult verifyImageSizes(Operation *op, PatchesAttr patches,
                               ShapedType image);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_IR_PATCHCHECKS_H
