//===- ProductLowering.cpp - products as the code of threads --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.cpp.inc"

Value nm_sparse::emitXRow(OpBuilder &b, Location loc, TileMatmulOp op,
                          Value row, Value panel) {
  EncodingAttr encoding = op.getEncoding();
  ScheduleAttr schedule = op.getSchedule();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  int64_t rows = schedule.getStepRows();
  if (op.getCondensed())
    return b.createOrFold<arith::AddIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, panel, constant(rows)), row);
  int64_t indexed = schedule.getTileWindows(encoding) * encoding.getKeptRows();
  if (rows > indexed)
    row = b.createOrFold<arith::MinUIOp>(loc, row, constant(indexed - 1));
  DenseRow dense(b, loc, encoding.getOuter());
  Value block = dense.getBlock(row);
  Value window = dense.getWindow(block);
  Value position =
      op.getForm().readPosition(b, loc, op.getComponents(), block, panel);
  return dense.get(row, window, position);
}

Value nm_sparse::emitPanel(OpBuilder &b, Location loc, TileMatmulOp op,
                           Value output) {
  EncodingAttr encoding = op.getEncoding();
  int64_t bn = encoding.getBlockN();
  if (op.getSchedule().isPanelAligned(encoding) &&
      bn >= op.getSchedule().getTileOutputs())
    return arith::ConstantIndexOp::create(b, loc, 0);
  if (Value offset = op.getPlace(kPanelOffsetPlace))
    output = b.createOrFold<arith::AddIOp>(loc, output, offset);
  return b.createOrFold<arith::DivUIOp>(
      loc, output, arith::ConstantIndexOp::create(b, loc, bn));
}

void nm_sparse::emitIf(OpBuilder &b, Location loc, Value condition,
                       MutableArrayRef<Value> values,
                       function_ref<void()> emitThen,
                       function_ref<void()> emitElse) {
  SmallVector<Value> before(values);
  auto ifOp = scf::IfOp::create(b, loc, TypeRange(ValueRange(before)),
                                condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto emitBlock = [&](Block *block, function_ref<void()> emit) {
    b.setInsertionPointToStart(block);
    llvm::copy(before, values.begin());
    if (emit)
      emit();
    scf::YieldOp::create(b, loc, ValueRange(values));
  };
  emitBlock(ifOp.thenBlock(), emitThen);
  emitBlock(ifOp.elseBlock(), emitElse);
  llvm::copy(ifOp.getResults(), values.begin());
}
