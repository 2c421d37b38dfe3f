//===- nm-test-opt.cpp - nm-opt with what only tests use ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Passes/StripDiscardable.h"
#include "Products/Scalar.h"
#include "Storages/Distances.h"
#include "Transfers/Whole.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nm_sparse/InitAll.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::nm_sparse::registerAllDialects(registry);
  mlir::nm_test::registerTestProducts(registry);
  mlir::nm_test::registerTestStorages(registry);
  mlir::nm_test::registerTestTransfers(registry);
  mlir::nm_sparse::registerTransformOps(registry);
  mlir::nm_sparse::registerAllPasses();
  mlir::nm_sparse::registerTransformPasses();
  mlir::nm_test::registerStripDiscardablePass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "nm_sparse test driver\n", registry));
}
