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
/// the process otherwise (Runtime/Error.h). From the first scope on, the
/// process has an error handler of ours.
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
  static void collect(const char *message, void *);

  std::string first;
  RuntimeErrors *outer;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_HOST_RUNTIMEERRORS_H
