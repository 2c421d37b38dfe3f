//===- Buffers.h - buffers behind views -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_BUFFERS_H
#define NM_SPARSE_GPU_SUPPORT_BUFFERS_H

#include "mlir/IR/Value.h"

namespace mlir::nm_sparse {

/// The buffer that `op` makes a view of; null when it makes none.
Value getViewSource(Operation *op);

/// The buffer that `value`, a view or a buffer, is in; `value` itself when it
/// is no memref.
Value getBufferOf(Value value);

/// A buffer and a place in it, in bytes.
struct BufferPlace {
  Value buffer;
  int64_t bytes = 0;
};

/// The place that `pointer`, an !llvm.ptr of the host's code, is the address of
/// (`memref.extract_aligned_pointer_as_index`, perhaps with bytes added); no
/// buffer where it is of another origin.
BufferPlace findPlace(Value pointer);

/// All of the buffer of which `value` is the front part of the first rows,
/// where the program allocates it and sees no other part of it: the rest is
/// padding. Else null.
Value getPaddedBuffer(Value value);

/// True where the threads of `launch` can run `op`, which is in it, as often as
/// they like: it touches no memory, or loads from a buffer that the launch only
/// reads.
bool isRepeatable(Operation *op, Operation *launch);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_BUFFERS_H
