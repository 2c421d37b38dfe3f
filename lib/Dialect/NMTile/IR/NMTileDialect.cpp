//===- NMTileDialect.cpp - registration of the nm_tile dialect ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "nm_sparse/Dialect/NMSparse/IR/BytecodeVersion.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Dialect/NMTile/IR/NMTileDialect.cpp.inc"
#include "nm_sparse/Dialect/NMTile/IR/NMTileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileTypes.cpp.inc"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileOps.cpp.inc"

namespace {

/// Every operation of the dialect may be inlined: none depends on its function.
struct NMTileInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// Version 1 differs from 0 in that it is written.
struct NMTileBytecodeInterface : public VersionedBytecodeInterface {
  explicit NMTileBytecodeInterface(Dialect *dialect)
      : VersionedBytecodeInterface(dialect, /*current=*/1) {}
};

} // namespace

void NMTileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "nm_sparse/Dialect/NMTile/IR/NMTileOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "nm_sparse/Dialect/NMTile/IR/NMTileTypes.cpp.inc"
      >();
  addInterfaces<NMTileBytecodeInterface, NMTileInlinerInterface>();
}
