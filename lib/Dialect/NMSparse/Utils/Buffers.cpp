//===- Buffers.cpp - buffers behind views ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

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

Value nm_sparse::getCallersTensor(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op))
      return Value();
    value = op->getOperand(0);
  }
  return value;
}

int64_t nm_sparse::getRowAlignment(ShapedType type, int64_t dynamicExtent,
                                   int64_t most) {
  int64_t last = type.getShape().back();
  if (ShapedType::isDynamic(last))
    last = dynamicExtent;
  return std::gcd(last * type.getElementTypeBitWidth() / 8, most);
}

int64_t nm_sparse::getRowPitchUnit(ShapedType type) {
  constexpr int64_t kLineBits = 128 * 8;
  Type element = type.getElementType();
  if (type.getRank() < 2 || !element.isIntOrFloat())
    return 1;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (bits < 8 || !llvm::isPowerOf2_64(bits))
    return 1;
  int64_t unit = kLineBits / bits, last = type.getShape().back();
  if (ShapedType::isDynamic(last))
    return unit;
  // Short rows need not be as far apart.
  unit =
      std::min(unit, std::max<int64_t>(128 / bits, llvm::PowerOf2Ceil(last)));
  return last == 1 || last % unit == 0 ? 1 : unit;
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
