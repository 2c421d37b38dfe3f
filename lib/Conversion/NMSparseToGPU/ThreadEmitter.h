//===- ThreadEmitter.h - loops of one thread --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_THREADEMITTER_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_THREADEMITTER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// A base of classes that emit the code of a thread with a builder of others.
class ThreadEmitter : protected IndexMath {
protected:
  ThreadEmitter(OpBuilder &b, Location loc)
      : IndexMath(b, loc), b(b), loc(loc) {}

  /// Quotient and remainder of an index that fits into 32 bits.
  std::pair<Value, Value> split(Value number, int64_t by) const {
    if (by == 1)
      return {number, constant(0)};
    Value quotient = widen(div(narrow(number), word(by)));
    return {quotient, sub(number, mul(quotient, by))};
  }

  /// Emits `body` for `first`, which is below `step`, and each further number
  /// below `end`.
  void forEach(Value first, int64_t end, int64_t step,
               function_ref<void(Value)> body) const {
    if (end == step)
      return body(first);
    forEach(first, constant(end), step, body);
  }
  void forEach(Value first, Value end, int64_t step,
               function_ref<void(Value)> body) const {
    auto loop = scf::ForOp::create(b, loc, first, end, constant(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// The same with a copy of `body` for each number, `most` at most, unless
  /// these are many. A null `end` is `most`.
  void forEachUnrolled(Value first, Value end, int64_t most, int64_t step,
                       function_ref<void(Value)> body) const {
    constexpr int64_t mostCopies = 32;
    if (most > mostCopies * step)
      return forEach(first, end ? end : constant(most), step, body);
    for (int64_t begin = 0; begin < most; begin += step) {
      Value number = add(first, begin);
      if (!end && begin + step <= most)
        body(number);
      else
        emitIf(isLess(number, end ? end : constant(most)),
               [&] { body(number); });
    }
  }

  /// Emits `body` where `condition` holds.
  void emitIf(Value condition, function_ref<void()> body) const {
    auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    body();
  }

  Value load(Value buffer, ArrayRef<Value> indices) const {
    return memref::LoadOp::create(b, loc, buffer, indices);
  }
  void store(Value value, Value buffer, ArrayRef<Value> indices) const {
    memref::StoreOp::create(b, loc, value, buffer, indices);
  }

  /// Shared memory of the launch.
  Value allocateShared(ArrayRef<int64_t> shape, Type element) const {
    auto space = gpu::AddressSpaceAttr::get(
        b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
    return memref::AllocOp::create(
        b, loc,
        MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space));
  }

  OpBuilder &b;
  Location loc;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_THREADEMITTER_H
