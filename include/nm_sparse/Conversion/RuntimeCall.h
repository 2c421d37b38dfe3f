//===- RuntimeCall.h - call the runtime library from host code --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime (include/nm_sparse/Runtime) is plain C: it takes addresses as
// pointers. These helpers make them from memrefs with upstream operations
// alone, so that no unrealized cast is left for a later pass.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_RUNTIMECALL_H
#define NM_SPARSE_CONVERSION_RUNTIMECALL_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"

namespace mlir::nm_sparse {

/// Refuses a program whose functions have names of runtime functions.
LogicalResult checkRuntimeNames(ModuleOp module);

/// Calls `name`, which it declares in `module` if needed; returns its results.
ValueRange callRuntime(OpBuilder &builder, Location loc, ModuleOp module,
                       StringRef name, TypeRange results, ValueRange operands);

/// Address of the first element of `buffer` as `!llvm.ptr`, where `metadata`
/// describes the buffer.
Value getElementPointer(OpBuilder &builder, Location loc, Value buffer,
                        memref::ExtractStridedMetadataOp metadata);

/// Stores `values` (i64) in an array on the stack and returns its address.
Value buildI64Array(OpBuilder &builder, Location loc, ValueRange values);

/// The same for constants.
Value buildI64Array(OpBuilder &builder, Location loc, ArrayRef<int64_t> values);

/// The same for pointers (`!llvm.ptr`).
Value buildPointerArray(OpBuilder &builder, Location loc, ValueRange pointers);

/// Address of a ranked memref descriptor of `buffer`: allocated and aligned
/// pointer, offset, sizes, strides.
Value buildDescriptor(OpBuilder &builder, Location loc, Value buffer);

/// `value` of index type as i64.
Value toI64(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_RUNTIMECALL_H
