//===- SumElements.h - types and sums of accumulators -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_SUMELEMENTS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_SUMELEMENTS_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// `value`, a vector, in element type `to`, exact when wider.
Value convertVector(OpBuilder &b, Location loc, Value value, Type to);

/// The sum of two accumulators.
Value addTo(OpBuilder &b, Location loc, Value acc, Value sum);

/// Map from the dimensions of the result tile to (tokens, outputs).
AffineMap getTokensByOutputs(MatmulOp op);

/// True for each vector dimension whose extent the tile is known to have.
SmallVector<bool> getInBounds(RankedTensorType tile, AffineMap map,
                              ArrayRef<int64_t> shape);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_SUMELEMENTS_H
