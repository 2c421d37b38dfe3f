//===- Registration.cpp - add the storages to the dialect -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StorageAttrs.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// The dialect parses and prints these attributes by their own functions, not by
// those that TableGen makes of all in one file.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#define GET_ATTRDEF_CLASSES
#include "Dialect/NMSparse/Storages/StorageAttrs.cpp.inc"
#pragma clang diagnostic pop

void NMSparseDialect::addOwnStorages() {
  addStorages<
#define GET_ATTRDEF_LIST
#include "Dialect/NMSparse/Storages/StorageAttrs.cpp.inc"
      >();
}
