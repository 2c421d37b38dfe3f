//===- Buffers.cpp - buffers behind views ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"

#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

using namespace mlir;

Value nm_sparse::getBufferOf(Value value) {
  auto buffer = dyn_cast<MemrefValue>(value);
  return buffer ? Value(memref::skipViewLikeOps(buffer)) : value;
}
