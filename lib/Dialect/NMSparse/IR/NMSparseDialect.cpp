//===- NMSparseDialect.cpp - registration, discardable attributes ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NMSparseBytecode.h"
#include "PatchesFields.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Dialect/NMSparse/IR/NMSparseDialect.cpp.inc"

#include "nm_sparse/Dialect/NMSparse/IR/NMSparseEnums.cpp.inc"

#include "nm_sparse/Dialect/NMSparse/IR/MatmulConfig.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.cpp.inc"

/// Schedules were attributes of this dialect once. Files of that time are read
/// where the dialect that has them now is registered.
static Attribute parseMoved(DialectAsmParser &parser, SMLoc loc) {
  Attribute moved = mlir::parseAttribute(
      ("#nm_tile." + parser.getFullSymbolSpec()).str(), parser.getContext());
  if (!moved)
    parser.emitError(loc) << "'#nm_sparse.schedule' of an older file is "
                             "'#nm_tile.schedule', which is not legal here";
  return moved;
}

Attribute NMSparseDialect::parseAttribute(DialectAsmParser &parser,
                                          Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attribute;
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  for (const Storage &storage : storages)
    if (storage.name == mnemonic)
      return storage.parse(parser);
  if (mnemonic == "schedule")
    return parseMoved(parser, loc);
  parser.emitError(loc) << "unknown attribute `" << mnemonic << "` in dialect `"
                        << getNamespace() << "`";
  return {};
}

void NMSparseDialect::printAttribute(Attribute attribute,
                                     DialectAsmPrinter &printer) const {
  for (const Storage &storage : storages)
    if (storage.type == attribute.getTypeID()) {
      printer << storage.name;
      storage.print(printer, attribute);
      return;
    }
  (void)generatedAttributePrinter(attribute, printer);
}

bool NMSparseDialect::hasStorage(StringRef name) const {
  return llvm::any_of(
      storages, [&](const Storage &storage) { return storage.name == name; });
}

WeightStorageInterface
NMSparseDialect::getStorage(StringRef name, EncodingAttr encoding) const {
  for (const Storage &storage : storages)
    if (storage.name == name)
      return dyn_cast_or_null<WeightStorageInterface>(storage.get(encoding));
  return {};
}

WeightStorageInterface
NMSparseDialect::getDefaultStorage(EncodingAttr encoding) const {
  for (const Storage &storage : storages)
    if (storage.isDefaultFor(encoding))
      return cast<WeightStorageInterface>(storage.get(encoding));
  return encoding;
}

namespace {

/// Prints an encoding as an alias, so that a type stays readable.
struct NMSparseAsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (isa<EncodingAttr>(attr)) {
      os << "sparse";
      return AliasResult::OverridableAlias;
    }
    if (isa<PackedAttr>(attr)) {
      os << "packed";
      return AliasResult::OverridableAlias;
    }
    return AliasResult::NoAlias;
  }
};

/// Every operation of the dialect may be inlined: none depends on its function.
struct NMSparseInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

} // namespace

void NMSparseDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseOps.cpp.inc"
      >();
  addOwnStorages();
  addInterfaces<NMSparseAsmInterface, NMSparseBytecodeInterface,
                NMSparseInlinerInterface>();
}

LogicalResult
NMSparseDialect::verifyOperationAttribute(Operation *op,
                                          NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == ConfigAttrHelper::getNameStr()) {
    auto config = dyn_cast<MatmulConfigInterface>(attribute.getValue());
    if (!config)
      return op->emitError("'")
             << name << "' must implement MatmulConfigInterface, as "
             << "#nm_tile.schedule does, got " << attribute.getValue();
    return config.verifyConfig(op);
  }
  if (name == EmbedAttrHelper::getNameStr()) {
    if (!isa<EncodingAttr>(attribute.getValue()))
      return op->emitError("'")
             << name << "' must be a #nm_sparse.encoding, got "
             << attribute.getValue();
    return success();
  }
  if (name == ComponentAttrHelper::getNameStr())
    return op->emitError("'")
           << name << "' belongs to an argument or a result of a function, not "
           << "to an operation";
  if (name == TokensAttrHelper::getNameStr()) {
    auto tokens = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<FunctionOpInterface>(op))
      return op->emitError("'") << name << "' belongs to a function";
    if (!tokens || !tokens.getType().isInteger(64) || tokens.getInt() < 1)
      return op->emitError("'")
             << name << "' must be an i64 of at least 1, got "
             << attribute.getValue();
    return success();
  }
  if (name == MaxCodeBytesAttrHelper::getNameStr()) {
    auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<MatmulOp>(op))
      return op->emitError("'") << name << "' belongs to an nm_sparse.matmul";
    if (!bytes || !bytes.getType().isInteger(64) || bytes.getInt() < 1)
      return op->emitError("'")
             << name << "' must be an i64 of at least 1, got "
             << attribute.getValue();
    return success();
  }
  return op->emitError("unknown attribute '")
         << name << "'; those of operations are '"
         << ConfigAttrHelper::getNameStr() << "', '"
         << EmbedAttrHelper::getNameStr() << "', '"
         << MaxCodeBytesAttrHelper::getNameStr() << "' and '"
         << TokensAttrHelper::getNameStr() << "'";
}

Operation *NMSparseDialect::materializeConstant(OpBuilder &b, Attribute value,
                                                Type type, Location loc) {
  return arith::ConstantOp::materialize(b, value, type, loc);
}

int64_t nm_sparse::getExpectedTokens(Operation *op, int64_t otherwise) {
  Operation *function = op;
  while (function && !isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  if (!function)
    return otherwise;
  NMSparseDialect::TokensAttrHelper helper(op->getContext());
  IntegerAttr tokens = helper.getAttr(function);
  return tokens ? tokens.getInt() : otherwise;
}

/// Checks `nm_sparse.component` on argument or result `number` (`what`) of
/// `op`, where `types` and `components` are those of all arguments or results.
/// Types that are not shaped come from a later lowering and are left alone.
static LogicalResult
verifyComponentAttribute(Operation *op, StringRef what, unsigned number,
                         NamedAttribute attribute, ArrayRef<Type> types,
                         function_ref<Attribute(unsigned)> components) {
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  if (attribute.getName() != name)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "' on " << what << " " << number
           << "; legal is '" << name << "'";
  auto own = dyn_cast<ComponentAttr>(attribute.getValue());
  if (!own)
    return op->emitError("'")
           << name << "' on " << what << " " << number
           << " must be a #nm_sparse.component, got " << attribute.getValue();
  auto type = number < types.size() ? dyn_cast<ShapedType>(types[number])
                                    : ShapedType();
  if (!type)
    return success();
  RankedTensorType expected = own.getComponent().type;
  if (!type.hasRank() || type.getShape() != expected.getShape() ||
      type.getElementType() != expected.getElementType())
    return op->emitError("'")
           << name << "' on " << what << " " << number << " describes "
           << expected << ", but its type is " << type;
  for (const WeightComponent &component : own.getPacked().getComponents()) {
    auto wanted = ComponentAttr::get(op->getContext(), component.name,
                                     own.getWeight(), own.getPacked());
    unsigned count = 0;
    for (unsigned i = 0; i < types.size(); ++i)
      count += components(i) == wanted;
    if (count != 1)
      return op->emitError("'")
             << name << "' on " << what << " " << number << ": component '"
             << component.name << "' of weight " << own.getWeight() << " is on "
             << count << " " << what << "s, legal is one";
  }
  return success();
}

LogicalResult NMSparseDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute '")
           << attribute.getName() << "' belongs to a function's argument";
  return verifyComponentAttribute(op, "argument", argument, attribute,
                                  function.getArgumentTypes(), [&](unsigned i) {
                                    return function.getArgAttr(
                                        i, ComponentAttrHelper::getNameStr());
                                  });
}

LogicalResult NMSparseDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute '")
           << attribute.getName() << "' belongs to a function's result";
  return verifyComponentAttribute(op, "result", result, attribute,
                                  function.getResultTypes(), [&](unsigned i) {
                                    return function.getResultAttr(
                                        i, ComponentAttrHelper::getNameStr());
                                  });
}
