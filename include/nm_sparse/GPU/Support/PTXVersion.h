//===- PTXVersion.h - the PTX that kernels become ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_PTXVERSION_H
#define NM_SPARSE_GPU_SUPPORT_PTXVERSION_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::nm_sparse {

/// The PTX version that features such as "+ptx84" ask for, 84 for 8.4; 0 where
/// they say none.
unsigned getPTXVersion(StringRef features);

/// NVVM targets of `module` get this version if theirs is older.
void requirePTX(gpu::GPUModuleOp module, unsigned version);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_PTXVERSION_H
