//===- PatchesToLinalg.h - patches for the oracle ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PATCHESTOLINALG_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PATCHESTOLINALG_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::nm_sparse {

/// nm_sparse.patches as a copy of a padded image.
void populatePatchesToLinalgPatterns(RewritePatternSet &patterns);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PATCHESTOLINALG_H
