//===- RowPitch.h - how far rows lie apart ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_ROWPITCH_H
#define NM_SPARSE_GPU_SUPPORT_ROWPITCH_H

#include "mlir/IR/BuiltinTypeInterfaces.h"

namespace mlir::nm_sparse {

/// The largest power of two of bytes, up to `most`, of which rows of `type` are
/// a multiple apart when they have no gaps; `dynamicExtent` stands for a row
/// whose size is not known.
int64_t getRowAlignment(ShapedType type, int64_t dynamicExtent, int64_t most);

/// What the program makes of the distance of rows: a multiple of so many
/// elements; 1 where they are as they come. 128 bytes, so that what a warp
/// reads of a row are whole lines of L2: 16-byte multiples take a third longer.
int64_t getRowPitchUnit(ShapedType type);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_ROWPITCH_H
