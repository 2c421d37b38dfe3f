//===- Buffers.h - buffers behind views -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "mlir/IR/Value.h"

namespace mlir::nm_sparse {

/// The buffer that `op` makes a view of; null when it makes none.
Value getViewSource(Operation *op);

/// The buffer that `value`, a view or a buffer, is in; `value` itself when it
/// is no memref.
Value getBufferOf(Value value);

/// The tensor of a caller that `value` is, as it is or under another type or
/// shape; null when the program makes it.
Value getCallersTensor(Value value);

/// The largest power of two of bytes, up to `most`, of which rows of `type` are
/// a multiple apart when they have no gaps; `dynamicExtent` stands for a row
/// whose size is not known.
int64_t getRowAlignment(ShapedType type, int64_t dynamicExtent, int64_t most);

/// What the program makes of the distance of rows: a multiple of so many
/// elements; 1 where they are as they come. 128 bytes, so that what a warp
/// reads of a row are whole lines of L2: 16-byte multiples take a third longer.
int64_t getRowPitchUnit(ShapedType type);

/// All of the buffer of which `value` is the front part of the first rows,
/// where the program allocates it and sees no other part of it: the rest is
/// padding. Else null.
Value getPaddedBuffer(Value value);

/// True where the threads of `launch` can run `op`, which is in it, as often as
/// they like: it touches no memory, or loads from a buffer that the launch only
/// reads.
bool isRepeatable(Operation *op, Operation *launch);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_BUFFERS_H
