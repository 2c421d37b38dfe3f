//===- StandardOutput.h - what cannot be printed ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_STANDARDOUTPUT_H
#define NM_SPARSE_SUPPORT_STANDARDOUTPUT_H

#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace mlir::nm_sparse {

/// Makes a program of ours end with a sentence and status 1 where standard
/// output could not be written, as on a full disk; llvm::outs() would end it
/// with "LLVM ERROR". Called once, at the start of main(): handlers run in the
/// reverse order of their registration, so this one sees what all others wrote,
/// and runs before the stream is destroyed. It holds for exit(), too, by which
/// llvm::cl ends after --help.
inline void checkStandardOutput(llvm::StringRef tool) {
  static std::string name;
  name = tool.str();
  (void)llvm::outs();
  (void)llvm::errs();
  std::atexit([] {
    llvm::raw_fd_ostream &output = llvm::outs();
    output.flush();
    if (!output.has_error())
      return;
    llvm::errs() << name << ": cannot write standard output: "
                 << output.error().message() << "\n";
    output.clear_error();
    _exit(1);
  });
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_STANDARDOUTPUT_H
