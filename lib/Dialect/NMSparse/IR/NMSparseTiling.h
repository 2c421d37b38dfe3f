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

/// Largest constant that `value` is known not to exceed.
FailureOr<int64_t> getKnownUpperBound(OpFoldResult value);

/// Returns true if a tile has all outputs of `op`.
bool hasAllOutputs(MatmulOp op, ArrayRef<OpFoldResult> offsets,
                   ArrayRef<OpFoldResult> sizes);

/// The panels that a tile's outputs lie in.
struct PanelRange {
  OpFoldResult first, count;
  /// Position of the tile's first output in its panel; null when the tile
  /// starts with a panel or lies inside one.
  Value offset;
};

/// Panels of `bn` outputs that those in [offset, offset + size) lie in, where
/// output 0 is at `base`, which may be null, in its panel. The count is a
/// constant wherever tiles and panels are aligned.
PanelRange getPanels(OpBuilder &b, Location loc, int64_t bn, Value base,
                     OpFoldResult offset, OpFoldResult size);

/// The tile of x: whole windows of k, except where the contraction dimension
/// ends inside the last one.
tensor::ExtractSliceOp sliceX(OpBuilder &b, MatmulOp op,
                              ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes);

/// Number of columns that a tile of stored values takes: those of its outputs,
/// or, at the ragged edge, of a whole tile when the padding of `columns` holds
/// one.
OpFoldResult getStoredCount(OpBuilder &b, int64_t columns, OpFoldResult offset,
                            OpFoldResult size);

/// The part of `component`, which has so many rows for each window, at these
/// columns of a tile. `rowsLast`: columns come before rows.
tensor::ExtractSliceOp sliceWindows(OpBuilder &b, MatmulOp op, Value component,
                                    int64_t rows, OpFoldResult column,
                                    OpFoldResult columns,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes,
                                    bool rowsLast = false);

/// Fails for a part of the contraction of a free weight: which values are those
/// of some rows, only all of it says.
LogicalResult verifyWholeContraction(MatmulOp op,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes);

/// The slices of x and of the weight that a tile reads.
struct InputSlices {
  tensor::ExtractSliceOp x;
  WeightSlice weight;

  /// All slices, and `last`, that of the destination.
  SmallVector<Operation *> getOperations(tensor::ExtractSliceOp last) const;
};

/// Inputs of the tile of `op` at these offsets of its iteration domain. It does
/// not look at init.
InputSlices sliceInputs(OpBuilder &b, MatmulOp op,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSETILING_H
