//===- nm-reduce.cpp - shrink an input that shows a bug -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Support/StandardOutput.h"

int main(int argc, char **argv) {
  mlir::nm_sparse::checkStandardOutput("nm-reduce");
  mlir::DialectRegistry registry;
  mlir::nm_sparse::registerAllDialects(registry);
  mlir::nm_sparse::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
