//===- RunReport.h - what nm-run has to say ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_REQUEST_RUNREPORT_H
#define NM_SPARSE_EXECUTION_REQUEST_RUNREPORT_H

#include "llvm/Support/JSON.h"
#include <string>

namespace mlir::nm_sparse {

struct RunReport {
  llvm::json::Object json; ///< Everything, for --json.
  std::string text;        ///< For people, one or more whole lines.
  bool passed = true;      ///< False when a check failed.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_REQUEST_RUNREPORT_H
