//===- nm-test-run.cpp - emulates programs with what only tests use -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nm-test-run FILE FUNCTION SIZE [STORAGE]: as nm-run FILE --entry FUNCTION
// --device emulate --check with all dynamic sizes SIZE, and weights stored as
// STORAGE.
//
//===----------------------------------------------------------------------===//

#include "Products/Scalar.h"
#include "Storages/Distances.h"
#include "Transfers/Whole.h"
#include "nm_sparse/Execution/Run.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir::nm_sparse;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  RunRequest request;
  if (argc < 4 || argc > 5 ||
      llvm::StringRef(argv[3]).getAsInteger(10, request.dynamicSize)) {
    llvm::errs() << "usage: nm-test-run FILE FUNCTION SIZE [STORAGE]\n";
    return 2;
  }
  request.file = argv[1];
  request.entry = argv[2];
  if (argc == 5)
    request.storage = argv[4];
  request.device = Device::Emulate;
  request.check = true;
  request.extend = [](mlir::DialectRegistry &registry) {
    mlir::nm_test::registerTestProducts(registry);
    mlir::nm_test::registerTestStorages(registry);
    mlir::nm_test::registerTestTransfers(registry);
  };
  auto report = run(request);
  if (!report) {
    llvm::errs() << "nm-test-run: " << llvm::toString(report.takeError())
                 << "\n";
    return 1;
  }
  llvm::outs() << report->text;
  return report->passed ? 0 : 1;
}
