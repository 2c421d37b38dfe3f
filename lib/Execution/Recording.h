//===- Recording.h - launches that are recorded -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_RECORDING_H
#define NM_SPARSE_LIB_EXECUTION_RECORDING_H

#include "mlir/Support/LLVM.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace mlir::nm_sparse {

/// A recording of the runtime that ends with its scope.
class Recording {
public:
  static llvm::Expected<std::unique_ptr<Recording>> begin() {
    if (nmsRecordBegin())
      return llvm::createStringError(nmsLastError());
    return std::unique_ptr<Recording>(new Recording());
  }
  ~Recording() {
    // The next use of the device fails for the same reason.
    (void)nmsRecordEnd();
  }
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

private:
  Recording() = default;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_RECORDING_H
