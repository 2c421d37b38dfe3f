//===- RuntimeErrors.h - failures of the runtime as errors ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_HOST_RUNTIMEERRORS_H
#define NM_SPARSE_LIB_EXECUTION_HOST_RUNTIMEERRORS_H

#include "llvm/Support/Error.h"
#include <string>

namespace mlir::nm_sparse {

/// Collects what fails on this thread in compiled host code, which would end
/// the process otherwise, or call its handler (Runtime/Error.h).
class RuntimeErrors {
public:
  RuntimeErrors();
  ~RuntimeErrors();
  RuntimeErrors(const RuntimeErrors &) = delete;
  RuntimeErrors &operator=(const RuntimeErrors &) = delete;

  /// The first failure since the scope began, which is forgotten; success where
  /// nothing failed.
  llvm::Error take();

private:
  static void collect(const char *message, void *scope);

  std::string first;
  RuntimeErrors *outer;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_HOST_RUNTIMEERRORS_H
