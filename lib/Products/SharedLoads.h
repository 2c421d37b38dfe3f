//===- SharedLoads.h - what a lane reads of a tile --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SHAREDLOADS_H
#define NM_SPARSE_LIB_PRODUCTS_SHAREDLOADS_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

/// A pointer to `element`, counted in memory, of `tile`, which lies in shared
/// memory.
Value getPointer(OpBuilder &b, Location loc, Value tile, Value element);
/// The same of the element at `indices`; strides are constants.
Value getPointer(OpBuilder &b, Location loc, Value tile, ValueRange indices);

/// Loads the value `bytes` behind `pointer`, aligned to its own size.
Value loadAt(OpBuilder &b, Location loc, Value pointer, int64_t bytes,
             Type type);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SHAREDLOADS_H
