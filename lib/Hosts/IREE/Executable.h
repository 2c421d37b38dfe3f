//===- Executable.h - kernels as an executable of IREE ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_IREE_EXECUTABLE_H
#define NM_SPARSE_LIB_HOSTS_IREE_EXECUTABLE_H

#include "nm_sparse/Hosts/IREE/IREEModule.h"

#include <map>

namespace mlir::nm_sparse {

/// The kernels that programs launch, as a `hal.executable.source` that holds
/// their code. The workload of a dispatch is its grid.
class Executable {
public:
  explicit Executable(const IREEOptions &options) : options(options) {}

  /// Adds the kernel of `launch`. Fails if IREE cannot launch it, or not in two
  /// ways.
  llvm::Error add(const nms::ManifestLaunch &launch);

  void write(llvm::raw_ostream &os, llvm::StringRef image) const;

  static constexpr llvm::StringLiteral name = "nm_sparse_kernels";

private:
  const IREEOptions &options;
  std::map<std::string, std::string> exports; ///< By kernel: its text.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_IREE_EXECUTABLE_H
