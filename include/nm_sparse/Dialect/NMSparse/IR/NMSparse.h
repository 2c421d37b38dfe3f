//===- NMSparse.h - the nm_sparse dialect, attributes, ops ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.h"

#include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.h.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.h.inc"

// The dialect's discardable attributes name the attribute classes.
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseDialect.h.inc"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseOps.h.inc"

namespace mlir::nm_sparse {

/// The encoding of `type` when it is a ranked tensor that carries one, else
/// null.
EncodingAttr getEncoding(Type type);

/// `type` without an nm_sparse encoding.
RankedTensorType stripEncoding(RankedTensorType type);

/// Extents of a weight and of the packed form of its outer level.
struct PackedShape {
  int64_t batch;   ///< 0 when the weight has no batch dimension.
  int64_t k;       ///< Contraction size.
  int64_t outputs; ///< Output size.
  int64_t windows; ///< ceil(k / window rows).
  int64_t panels;  ///< ceil(outputs / bn).
};

/// Extents of a weight of static shape `weight` under `encoding`.
PackedShape getPackedShape(RankedTensorType weight, EncodingAttr encoding);

/// Columns of a 16-bit tile that fill the 128-byte line over which its words
/// are swizzled.
constexpr int64_t kSwizzledColumns = 64;

/// How a tile of shared memory is stored.
enum class TileLayout {
  /// Row after row.
  Rows,
  /// Row after row, the 16-byte words of each in the order `word ^ (row % 8)`,
  /// so that eight rows of one column lie in different banks.
  SwizzledRows,
  /// Blocks of kSwizzledColumns columns, one after the other, each stored as
  /// SwizzledRows: what products of warpgroups read, and what the tensor memory
  /// accelerator writes. Starts at a multiple of kSwizzledBlockAlignment bytes.
  SwizzledBlocks
};

/// Eight lines of 128 bytes, after which the order of words repeats.
constexpr int64_t kSwizzledBlockAlignment = 1024;

/// Tiles of 16-bit floats with rows of whole lines are.
bool isSwizzled(MemRefType tile);

/// The layout of `tile` in launches whose products have `schedule`.
TileLayout getTileLayout(ScheduleAttr schedule, MemRefType tile);

/// True for the operations that fill a tile of shared memory.
inline bool isTileCopy(Operation *op) {
  return isa<AsyncCopyOp, AsyncGatherOp, BulkCopyOp>(op);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H
