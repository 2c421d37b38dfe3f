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
/// encode tensor maps, fill and copy. They expect `image`, `KERNELS`,
/// `kernel_names` and `kernel_waits` before them.
llvm::StringRef getCSupport();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_C_CSUPPORT_H
