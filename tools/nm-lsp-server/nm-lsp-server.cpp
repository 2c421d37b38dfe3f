//===- nm-lsp-server.cpp - language server for editors --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Support/StandardOutput.h"

int main(int argc, char **argv) {
  mlir::nm_sparse::checkStandardOutput("nm-lsp-server");
  mlir::DialectRegistry registry;
  mlir::nm_sparse::registerAllDialects(registry);
  mlir::nm_sparse::registerTransformOps(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
