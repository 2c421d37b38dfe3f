//===- UnpackToLoops.h - dense weights, element by element ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKTOLOOPS_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKTOLOOPS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::nm_sparse {

/// nm_sparse.unpack to loops over what is stored.
void populateUnpackToLoopsPatterns(RewritePatternSet &patterns);

/// The number at place `place` of a batch entry of `component`.
Value extractIndex(OpBuilder &b, Location loc, Value component,
                   ValueRange batch, Value place);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKTOLOOPS_H
