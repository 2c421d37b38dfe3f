//===- LaunchFields.h - memrefs that are passed by their fields -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_LAUNCH_LAUNCHFIELDS_H
#define NM_SPARSE_LIB_GPU_LAUNCH_LAUNCHFIELDS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::nm_sparse {

/// Lets `launch` pass each memref as its fields: two equal pointers, the
/// offset, the sizes and the strides, all values of the host.
void expandOperands(gpu::LaunchFuncOp launch);

/// The pointer to the start of `buffer`, as a value of the host.
Value getDevicePointer(OpBuilder &b, Location loc, Value buffer);

/// Patterns that compute the fields of views and buffers from sizes.
void populateResolveLaunchFieldsPatterns(RewritePatternSet &patterns);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_LAUNCH_LAUNCHFIELDS_H
