//===- nm-opt.cpp - run passes on IR --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Support/StandardOutput.h"

int main(int argc, char **argv) {
  mlir::nm_sparse::checkStandardOutput("nm-opt");
  mlir::DialectRegistry registry;
  mlir::nm_sparse::registerAllDialects(registry);
  mlir::nm_sparse::registerTransformOps(registry);
  mlir::nm_sparse::registerAllPasses();
  mlir::nm_sparse::registerTransformPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "nm_sparse optimizer driver\n", registry));
}
