//===- CSource.h - kernels as a file of C -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_HOSTS_C_CSOURCE_H
#define NM_SPARSE_HOSTS_C_CSOURCE_H

#include "nm_sparse/Manifest/Manifest.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// A file of C11 and its header.
struct CSource {
  std::string source, header;
};

/// Writes functions that launch the kernels of `image`, PTX or a cubin, with
/// the CUDA driver alone: one C function for each function of `manifest`, whose
/// kernels take bound arguments (docs/Hosts.md). `stem` is the name of the
/// files without their endings, and the start of the names that they share.
llvm::Expected<CSource> writeCSource(const nms::Manifest &manifest,
                                     llvm::StringRef image,
                                     llvm::StringRef stem);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_HOSTS_C_CSOURCE_H
