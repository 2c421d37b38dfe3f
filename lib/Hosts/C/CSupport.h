//===- CSupport.h - what all files of C share -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_C_CSUPPORT_H
#define NM_SPARSE_LIB_HOSTS_C_CSUPPORT_H

#include "llvm/ADT/StringRef.h"

namespace mlir::nm_sparse {

/// Static functions that the bodies call: they load the kernels, launch them,
/// encode tensor maps, fill and copy. They expect `nms_image`, `NMS_KERNELS`,
/// `nms_kernel_names` and `nms_kernel_waits` before them. Names of the file's
/// own begin like these, and those of programs do not (isCName).
llvm::StringRef getCSupport();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_C_CSUPPORT_H
