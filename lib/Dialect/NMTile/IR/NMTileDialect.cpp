//===- NMTileDialect.cpp - registration of the nm_tile dialect ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "nm_sparse/Dialect/NMSparse/IR/BytecodeVersion.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/GPU/Support/Im2col.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Dialect/NMTile/IR/NMTileDialect.cpp.inc"
#include "nm_sparse/Dialect/NMTile/IR/NMTileEnums.cpp.inc"

#include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.cpp.inc"
#include "nm_sparse/Dialect/NMTile/IR/SumOpInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileTypes.cpp.inc"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMTile/IR/NMTileOps.cpp.inc"

OptionalParseResult NMTileDialect::parseBare(AsmParser &parser,
                                             StringRef &mnemonic,
                                             Attribute &attribute) const {
  OptionalParseResult own =
      generatedAttributeParser(parser, &mnemonic, Type(), attribute);
  if (own.has_value())
    return own;
  auto external = externalParsers.find(mnemonic);
  if (external == externalParsers.end())
    return std::nullopt;
  attribute = external->second(parser);
  return success(attribute != nullptr);
}

LogicalResult NMTileDialect::printBare(AsmPrinter &printer,
                                       Attribute attribute) const {
  auto external = externalPrinters.find(attribute.getTypeID());
  if (external == externalPrinters.end())
    return generatedAttributePrinter(attribute, printer);
  external->second(printer, attribute);
  return success();
}

Attribute NMTileDialect::parseAttribute(DialectAsmParser &parser, Type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attribute;
  if (parseBare(parser, mnemonic, attribute).has_value())
    return attribute;
  parser.emitError(loc) << "unknown attribute `" << mnemonic << "` in dialect `"
                        << getNamespace() << "`";
  return {};
}

void NMTileDialect::printAttribute(Attribute attribute,
                                   DialectAsmPrinter &printer) const {
  (void)printBare(printer, attribute);
}

LogicalResult
NMTileDialect::verifyOperationAttribute(Operation *op,
                                        NamedAttribute attribute) {
  if (attribute.getName() == kIm2colAttrName)
    return verifyIm2col(op, attribute.getValue());
  return success();
}

ParseResult nm_sparse::parsePart(AsmParser &parser, Attribute &part) {
  OptionalParseResult full = parser.parseOptionalAttribute(part);
  if (full.has_value())
    return *full;
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  const auto *dialect = parser.getContext()->getLoadedDialect<NMTileDialect>();
  OptionalParseResult own = dialect->parseBare(parser, mnemonic, part);
  if (own.has_value())
    return *own;
  return parser.emitError(loc)
         << "'" << mnemonic << "' is no part of a schedule of this dialect";
}

void nm_sparse::printPart(AsmPrinter &printer, Attribute part) {
  const auto *dialect = part.getContext()->getLoadedDialect<NMTileDialect>();
  if (failed(dialect->printBare(printer, part)))
    printer << part;
}

namespace {

/// Prints large attributes as aliases, so that an operation stays readable.
struct NMTileAsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<ScheduleAttr, AccumulatorAttr>(attribute))
      return AliasResult::NoAlias;
    os << (isa<ScheduleAttr>(attribute) ? "schedule" : "accumulator");
    return AliasResult::OverridableAlias;
  }
};

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
  addInterfaces<NMTileAsmInterface, NMTileBytecodeInterface,
                NMTileInlinerInterface>();
}
