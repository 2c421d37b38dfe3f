//===- RowPitch.h - how far rows lie apart ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_ROWPITCH_H
#define NM_SPARSE_GPU_SUPPORT_ROWPITCH_H

#include "mlir/IR/BuiltinTypeInterfaces.h"

namespace mlir::nm_sparse {

/// The largest power of two of bytes, up to `most`, that divides the distance
/// between rows of `type` without gaps; `dynamicExtent` stands for the unknown
/// size of a row.
int64_t getRowAlignment(ShapedType type, int64_t dynamicExtent, int64_t most);

/// Returns the number of elements to a multiple of which the program pads each
/// row pitch; 1 if it does not change the pitch. This is 128 bytes, so that a
/// warp reads whole L2 lines of a row: multiples of 16 bytes take a third
/// longer.
int64_t getRowPitchUnit(ShapedType type);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_ROWPITCH_H
