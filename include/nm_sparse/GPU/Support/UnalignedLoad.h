//===- UnalignedLoad.h - 16 bytes from any element on -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_UNALIGNEDLOAD_H
#define NM_SPARSE_GPU_SUPPORT_UNALIGNEDLOAD_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

/// Loads 16 bytes of a buffer from an element that need not be at a multiple of
/// 16 bytes: the two aligned words that hold them, shifted together.
class UnalignedLoad {
public:
  /// Prepares loads from `source`, in global memory, at the builder's insertion
  /// point.
  UnalignedLoad(OpBuilder &b, Location loc, Value source);

  /// i1: the aligned words around the 16 bytes from `indices` on lie in the
  /// buffer.
  Value isInside(ArrayRef<Value> indices);
  /// The 16 bytes as a vector of elements.
  Value load(ArrayRef<Value> indices);

private:
  Value constant(int64_t v);
  Value getAddress(ArrayRef<Value> indices);
  Value loadWords(Value address);

  OpBuilder &b;
  Location loc;
  Type element;
  /// i64: addresses of the first element and behind the last one.
  Value begin, end;
  SmallVector<Value> byteStrides;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_UNALIGNEDLOAD_H
