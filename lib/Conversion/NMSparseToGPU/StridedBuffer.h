//===- StridedBuffer.h - tensors as kernels read them -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_STRIDEDBUFFER_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_STRIDEDBUFFER_H

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

namespace mlir::nm_sparse {

/// A buffer of `tensor` of which nothing is assumed but its shape.
inline Value getStridedBuffer(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return bufferization::ToBufferOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType(), layout),
      tensor, /*read_only=*/true);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_STRIDEDBUFFER_H
