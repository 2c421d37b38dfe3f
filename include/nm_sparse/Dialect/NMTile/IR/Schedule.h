//===- Schedule.h - how one product is mapped to the GPU --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes of schedules, and the interfaces of their parts, without the
// operations on tiles: what the cost model and the products need.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_H
#define NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/IR/Accumulator.h"
#include "nm_sparse/Dialect/NMTile/IR/OperandTiles.h"
#include "nm_sparse/Dialect/NMTile/IR/OperandTransfer.h"

namespace mlir::nm_sparse {
class ScheduleAttr;
class TransfersAttr;
} // namespace mlir::nm_sparse

#include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.h.inc"

#include "nm_sparse/Dialect/NMTile/IR/NMTileDialect.h.inc"

namespace mlir::nm_sparse {

/// The schedule of `op`, or null when it has none or a config of another host.
ScheduleAttr getSchedule(MatmulOp op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_H
