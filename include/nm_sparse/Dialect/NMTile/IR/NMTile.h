//===- NMTile.h - the nm_tile dialect ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILE_H
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILE_H

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "nm_sparse/Dialect/NMTile/IR/SumOpInterface.h.inc"

#define GET_TYPEDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileTypes.h.inc"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileOps.h.inc"

namespace mlir::nm_sparse {

/// Named barriers of the roles; 0 is that of the whole CTA.
inline constexpr int64_t kConsumerBarrier = 1, kProducerBarrier = 2;

/// True for the operations that fill a tile of shared memory.
inline bool isTileCopy(Operation *op) {
  return isa<AsyncCopyOp, AsyncGatherOp, BulkCopyOp>(op);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILE_H
