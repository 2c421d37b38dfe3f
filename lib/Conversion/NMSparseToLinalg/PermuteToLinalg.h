//===- PermuteToLinalg.h - outputs where they belong ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PERMUTETOLINALG_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PERMUTETOLINALG_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::nm_sparse {

/// nm_sparse.permute to linalg.generic. Permutations are inverted by loops or,
/// if `structured`, by linalg.generic, too.
void populatePermuteToLinalgPatterns(RewritePatternSet &patterns,
                                     bool structured);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_PERMUTETOLINALG_H
