//===- Buffers.cpp - buffers behind views ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/Buffers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::getViewSource(Operation *op) {
  if (auto transpose = dyn_cast_or_null<memref::TransposeOp>(op))
    return transpose.getIn();
  auto view = dyn_cast_or_null<ViewLikeOpInterface>(op);
  return view ? view.getViewSource() : Value();
}

Value nm_sparse::getBufferOf(Value value) {
  while (isa<BaseMemRefType>(value.getType())) {
    Value source = getViewSource(value.getDefiningOp());
    if (!source)
      break;
    value = source;
  }
  return value;
}

BufferPlace nm_sparse::findPlace(Value pointer) {
  auto cast = pointer.getDefiningOp<LLVM::IntToPtrOp>();
  auto number = cast ? cast.getArg().getDefiningOp<arith::IndexCastOp>()
                     : arith::IndexCastOp();
  if (!number)
    return {};
  Value index = number.getIn();
  BufferPlace place;
  APInt bytes;
  if (auto add = index.getDefiningOp<arith::AddIOp>();
      add && matchPattern(add.getRhs(), m_ConstantInt(&bytes))) {
    place.bytes = bytes.getSExtValue();
    index = add.getLhs();
  }
  if (auto start =
          index.getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>())
    place.buffer = getBufferOf(start.getSource());
  return place;
}

Value nm_sparse::getPaddedBuffer(Value value) {
  auto view = value.getDefiningOp<memref::SubViewOp>();
  auto alloc = view ? view.getSource().getDefiningOp<memref::AllocOp>()
                    : memref::AllocOp();
  if (!alloc || view.getDroppedDims().any() ||
      !llvm::all_of(view.getMixedOffsets(), isZeroInteger) ||
      !llvm::all_of(view.getMixedStrides(), isOneInteger))
    return Value();
  bool isAlone = llvm::all_of(alloc->getUsers(), [&](Operation *user) {
    return user == view || isa<memref::DeallocOp, memref::DimOp>(user);
  });
  return isAlone ? alloc.getResult() : Value();
}

bool nm_sparse::isRepeatable(Operation *op, Operation *launch) {
  if (isMemoryEffectFree(op))
    return true;
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return false;
  Value buffer = getBufferOf(load.getMemRef());
  // All views of a buffer that is not from the kernel.
  if (launch->isAncestor(buffer.getParentRegion()->getParentOp()))
    return false;
  SmallVector<Value> views = {buffer};
  while (!views.empty()) {
    Value view = views.pop_back_val();
    for (Operation *user : view.getUsers()) {
      if (!launch->isAncestor(user))
        continue;
      auto next = dyn_cast<ViewLikeOpInterface>(user);
      if (next && next.getViewSource() == view) {
        views.append(user->result_begin(), user->result_end());
        continue;
      }
      auto effects = dyn_cast<MemoryEffectOpInterface>(user);
      if (!effects ||
          effects.getEffectOnValue<MemoryEffects::Write>(view).has_value())
        return false;
    }
  }
  return true;
}
