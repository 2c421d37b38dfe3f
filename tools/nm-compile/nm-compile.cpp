//===- nm-compile.cpp - linalg to PTX -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Compile/Compile.h"
#include "nm_sparse/Support/StandardOutput.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

using namespace mlir::nm_sparse;

/// Where an installation and a build folder have the databases that come with
/// the compiler.
static std::string findDatabases(const char *program) {
  // The address names the executable that this function is in.
  std::string path = llvm::sys::fs::getMainExecutable(
      program, reinterpret_cast<void *>(&findDatabases));
  llvm::SmallString<128> folder(
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(path)));
  llvm::sys::path::append(folder, "share", "nm_sparse", "tuned");
  return folder.str().str();
}

int main(int argc, char **argv) {
  checkStandardOutput("nm-compile");
  llvm::InitLLVM init(argc, argv);
  CompileHost host;
  host.databases = findDatabases(argv[0]);
  return runCompiler(llvm::ArrayRef<const char *>(argv + 1, argc - 1), host);
}
