//===- NMSparseTiling.h - what a tile of nm_sparse.matmul reads -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSETILING_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSETILING_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Slice of `source` whose dimensions follow the given offsets and sizes.
tensor::ExtractSliceOp slice(OpBuilder &b, Location loc, Value source,
                             ArrayRef<OpFoldResult> offsets,
                             ArrayRef<OpFoldResult> sizes);

/// A number that is known to divide `value`, 0 for the constant 0.
int64_t getKnownDivisor(OpFoldResult value);

/// The slices of x and of the packed weight that a tile reads.
struct InputSlices {
  tensor::ExtractSliceOp x, values, index;
  /// Only with two levels; null with one.
  tensor::ExtractSliceOp innerIndex;
  /// Only for ragged panels; null for all other weights.
  tensor::ExtractSliceOp panels;
  /// That of the tile; null when it needs none.
  Value panelOffset;

  /// Null where there is one level.
  Value getInnerIndex() {
    return innerIndex ? innerIndex->getResult(0) : Value();
  }
  Value getPanels() { return panels ? panels->getResult(0) : Value(); }
  /// All slices, and `last`, that of the destination.
  SmallVector<Operation *> getOperations(tensor::ExtractSliceOp last) const;
};

/// Returns true if a tile of `op` at these offsets begins with a tile in which
/// its weight is stored, if there are such.
bool startsStoredTile(MatmulOp op, ArrayRef<OpFoldResult> offsets);

/// Fails for two levels in the canonical form, which no kernel reads.
LogicalResult checkCanonicalLevels(MatmulOp op);

/// Fails for a part of the contraction of a free weight: which values are those
/// of some rows, only all of it says.
LogicalResult checkWholeContraction(MatmulOp op, ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes);

/// Fails for a tile of ragged panels that has parts of several: each has rows
/// of its own.
LogicalResult checkPanelTile(MatmulOp op, ArrayRef<OpFoldResult> offsets,
                             ArrayRef<OpFoldResult> sizes);

/// Inputs of the tile of `op` at these offsets of its iteration domain. It does
/// not look at init.
InputSlices sliceInputs(OpBuilder &b, MatmulOp op,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSETILING_H
