//===- Registration.cpp - add the transfers to a registry -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Transfers/Registration.h"

#include "Transfers/TransferAttrs.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// The dialect parses and prints these attributes by their own functions, not by
// those that TableGen makes of all in one file.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#define GET_ATTRDEF_CLASSES
#include "Transfers/TransferAttrs.cpp.inc"
#pragma clang diagnostic pop

void nm_sparse::registerTransfers(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, NMTileDialect *dialect) {
    dialect->addTransfers<
#define GET_ATTRDEF_LIST
#include "Transfers/TransferAttrs.cpp.inc"
        >();
  });
}
