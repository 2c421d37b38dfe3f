//===- nm-compile.cpp - linalg to PTX -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Compile/Compile.h"
#include "nm_sparse/Support/StandardOutput.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir::nm_sparse;

int main(int argc, char **argv) {
  checkStandardOutput("nm-compile");
  llvm::InitLLVM init(argc, argv);
  return runCompiler(llvm::ArrayRef<const char *>(argv + 1, argc - 1), {});
}
