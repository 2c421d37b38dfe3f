//===- NMSparseDialect.cpp - registration, discardable attributes ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.cpp.inc"

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
    if (isa<ScheduleAttr>(attr)) {
      os << "schedule";
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
  addInterfaces<NMSparseAsmInterface, NMSparseInlinerInterface>();
}

LogicalResult
NMSparseDialect::verifyOperationAttribute(Operation *op,
                                          NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == ScheduleAttrHelper::getNameStr()) {
    if (!isa<ScheduleAttr>(attribute.getValue()))
      return op->emitError("'")
             << name << "' must be a #nm_sparse.schedule, got "
             << attribute.getValue();
    return success();
  }
  if (name == ValuesAttrHelper::getNameStr() ||
      name == IndexAttrHelper::getNameStr())
    return op->emitError("'")
           << name << "' belongs to an argument or a result of a function, not "
           << "to an operation";
  return op->emitError("unknown attribute '")
         << name << "'; that of an operation is '"
         << ScheduleAttrHelper::getNameStr() << "'";
}

/// Checks `nm_sparse.values` or `nm_sparse.index` on argument or result
/// `number` (`what`) of `op`, where `types` and `attributes` are those of all
/// arguments or results. Types that are not shaped come from a later lowering
/// and are left alone.
static LogicalResult
verifyPackedAttribute(Operation *op, StringRef what, unsigned number,
                      NamedAttribute attribute, ArrayRef<Type> types,
                      function_ref<Attribute(unsigned, StringRef)> attributes) {
  StringRef values = NMSparseDialect::ValuesAttrHelper::getNameStr();
  StringRef index = NMSparseDialect::IndexAttrHelper::getNameStr();
  StringRef name = attribute.getName();
  if (name != values && name != index)
    return op->emitError("unknown attribute '")
           << name << "' on " << what << " " << number << "; legal are '"
           << values << "' and '" << index << "'";
  auto packed = dyn_cast<PackedAttr>(attribute.getValue());
  if (!packed)
    return op->emitError("'")
           << name << "' on " << what << " " << number
           << " must be a #nm_sparse.packed, got " << attribute.getValue();
  auto type = number < types.size() ? dyn_cast<ShapedType>(types[number])
                                    : ShapedType();
  if (!type)
    return success();
  bool isValues = name == values;
  RankedTensorType expected =
      isValues ? packed.getValuesType() : packed.getIndexType();
  if (!type.hasRank() || type.getShape() != expected.getShape() ||
      type.getElementType() != expected.getElementType())
    return op->emitError("'")
           << name << "' on " << what << " " << number << " describes "
           << expected << ", but its type is " << type;
  unsigned partner = isValues ? number + 1 : number - 1;
  bool hasPartner = (isValues || number > 0) && partner < types.size();
  if (!hasPartner || attributes(partner, isValues ? index : values) != packed)
    return op->emitError("'")
           << name << "' on " << what << " " << number << " needs the same '"
           << (isValues ? index : values) << "' on the "
           << (isValues ? "next " : "previous ") << what;
  return success();
}

LogicalResult NMSparseDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute '")
           << attribute.getName() << "' belongs to a function's argument";
  return verifyPackedAttribute(
      op, "argument", argument, attribute, function.getArgumentTypes(),
      [&](unsigned i, StringRef name) { return function.getArgAttr(i, name); });
}

LogicalResult NMSparseDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute '")
           << attribute.getName() << "' belongs to a function's result";
  return verifyPackedAttribute(op, "result", result, attribute,
                               function.getResultTypes(),
                               [&](unsigned i, StringRef name) {
                                 return function.getResultAttr(i, name);
                               });
}
