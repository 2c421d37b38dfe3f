//===- ErrorCollector.h - keep the first error ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_ERRORCOLLECTOR_H
#define NM_SPARSE_SUPPORT_ERRORCOLLECTOR_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::nm_sparse {

/// Keeps the first error of its lifetime instead of printing diagnostics.
class ErrorCollector : public ScopedDiagnosticHandler {
public:
  explicit ErrorCollector(MLIRContext *context)
      : ScopedDiagnosticHandler(context) {
    setHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
          !text.empty())
        return success();
      llvm::raw_string_ostream stream(text);
      if (auto location = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
        stream << location.getFilename().getValue() << ":" << location.getLine()
               << ":" << location.getColumn() << ": ";
      stream << diagnostic;
      return success();
    });
  }
  StringRef getFirst() const {
    return text.empty() ? StringRef("no reason was given") : StringRef(text);
  }

private:
  std::string text;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_ERRORCOLLECTOR_H
