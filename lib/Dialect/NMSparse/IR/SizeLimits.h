//===- SizeLimits.h - the largest tensors of a product ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles, grids and the cost model multiply and round up extents. Within these
// limits, which are beyond the memory of any GPU, nothing of that overflows.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SIZELIMITS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SIZELIMITS_H

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::nm_sparse {

inline constexpr int64_t kMaxExtent = (int64_t(1) << 31) - 1;
inline constexpr int64_t kMaxElements = int64_t(1) << 48;

/// Refuses a tensor of `shape` that is too large. `name` says which it is.
inline LogicalResult
verifySizeLimits(ArrayRef<int64_t> shape, StringRef name,
                 function_ref<InFlightDiagnostic()> emitError) {
  int64_t elements = 1;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    // Dynamic ones are negative.
    if (extent <= 0)
      continue;
    if (extent > kMaxExtent)
      return emitError() << name << " has " << extent << " in dimension " << dim
                         << ", legal is at most " << kMaxExtent;
    if (elements > kMaxElements / extent)
      return emitError() << name << " has more than " << kMaxElements
                         << " elements, legal are at most as many";
    elements *= extent;
  }
  return success();
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SIZELIMITS_H
