//===- OperandTransfer.h - how one operand comes ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data that TransferAttrInterface returns, and the operand that it moves.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTRANSFER_H
#define NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTRANSFER_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir {
class RewritePatternSet;
class TypeConverter;
} // namespace mlir

namespace mlir::nm_sparse {
struct CopyThreads;

/// The operands that have transfers of their own.
enum class OperandRole { Activations, Values, Positions };

/// The field of `transfers` that says how an operand comes: x, values or index.
StringRef getRoleName(OperandRole role);

/// The properties of a transfer that checks, pipelines and costs read.
struct TransferUse {
  /// The product reads global memory: there is no tile.
  bool isDirect = false;
  /// The tensor memory accelerator fills the tile, not the threads.
  bool isBulk = false;
  /// The tile holds only those rows of the activations that the index names.
  bool selectsRows = false;
  /// The tile holds all K steps, and is filled once, before them.
  bool isResident = false;
  /// The tile holds, in place of positions, rows of the activations.
  bool tabulatesRows = false;
};

/// One operand of a product, when its tiles move to shared memory.
struct PromotedOperand {
  MatmulOp op;
  OperandRole role;
  /// The tensor that the product reads in a K step, and the dimension of it, if
  /// any, that is a unit batch.
  Value source;
  std::optional<int64_t> batchDim = std::nullopt;
  /// The tensor with the rows of all K steps, of which `source` is a slice, and
  /// the first row of `source` in it. Null where the slice is not known.
  Value whole = {};
  OpFoldResult firstRow = {};
  /// The extents of the tile of a K step.
  SmallVector<int64_t> tile = {};

  /// Tokens are the first dimension of activations, and of their tile.
  bool tokensFirst = false, tileTokensFirst = false;
  /// Activations alone have this: the promoted positions of the K step.
  Value positions = {};
  /// An image as `source` has patches, and a K step reads this part of their
  /// matrix.
  PatchesAttr patches = {};
  ValueRange patchSlice = {};

  Location getLoc() { return op.getLoc(); }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTRANSFER_H
