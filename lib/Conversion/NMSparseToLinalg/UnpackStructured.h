//===- UnpackStructured.h - dense weights without loops ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKSTRUCTURED_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKSTRUCTURED_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Refuses, with an error, what has no structured form in `root`.
LogicalResult checkStructured(Operation *root);

/// The dense weight of type `weight` that is stored in `form` as `components`,
/// by linalg.generic ops. One of a shuffled weight is a nm_sparse.permute.
Value unpackStructured(OpBuilder &b, Location loc, WeightStorageInterface form,
                       RankedTensorType weight, ValueRange components);

/// All rows and outputs that the tiles of a bitmap hold, of one level or of
/// free elements.
Value unpackBits(OpBuilder &b, Location loc, const BitmapTile &tile,
                 Value values, Value bits);

/// At least `k` rows of all outputs of the panels that `components`, the
/// values, index and panels of `ragged`, hold.
Value unpackPanels(OpBuilder &b, Location loc, WeightStorageInterface form,
                   int64_t k, ValueRange components);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_UNPACKSTRUCTURED_H
