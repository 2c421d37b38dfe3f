//===- Distances.cpp - positions as distances -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that a storage has to say, in one file: which components a weight has,
// what data goes into them, and how a kernel reads a position. Tiles are cut as
// in the canonical form.
//
//===----------------------------------------------------------------------===//

#include "Storages/Distances.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectImplementation.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_test;

#include "Storages/DistancesDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Storages/DistancesAttrs.h.inc"

#include "Storages/DistancesDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Storages/DistancesAttrs.cpp.inc"

void NMTestStoragesDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Storages/DistancesAttrs.cpp.inc"
      >();
}

void nm_test::registerTestStorages(DialectRegistry &registry) {
  registry.insert<NMTestStoragesDialect>();
}

//===----------------------------------------------------------------------===//
// Form and components
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kDistances = "distances";

StringRef DistancesAttr::getFormName() const { return getMnemonic(); }

Attribute DistancesAttr::getPattern() const { return getEncoding(); }

Attribute DistancesAttr::withPattern(Attribute pattern) const {
  return get(getContext(), cast<EncodingAttr>(pattern));
}

int64_t DistancesAttr::getLayoutVersion() const { return 1; }

LogicalResult DistancesAttr::verifyPackable(
    function_ref<InFlightDiagnostic()> emitError) const {
  EncodingAttr encoding = getEncoding();
  if (encoding.isFree() || encoding.hasInnerLevel() ||
      encoding.getOrder() != OutputOrder::Identity ||
      encoding.getIndexBitWidth() != 8)
    return emitError() << "distances are those of one n:m level of at most 256 "
                          "blocks, with order = identity, got "
                       << encoding;
  return success();
}

SmallVector<StringRef> DistancesAttr::getComponentNames() const {
  return {kValuesComponent, kDistances};
}

SmallVector<WeightComponent>
DistancesAttr::getComponents(RankedTensorType weight) const {
  SmallVector<WeightComponent> components = getEncoding().getComponents(weight);
  components.back().name = kDistances;
  return components;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

/// Positions of a window ascend: each becomes the number of blocks behind the
/// one before it.
FailureOr<SmallVector<PackedComponent>>
DistancesAttr::pack(RankedTensorType weight, ArrayRef<char> dense,
                    function_ref<InFlightDiagnostic()> emitError) const {
  FailureOr<SmallVector<PackedComponent>> packed =
      getEncoding().pack(weight, dense, emitError);
  if (failed(packed))
    return failure();
  PackedComponent &positions = packed->back();
  int64_t panels = positions.type.getShape().back();
  int64_t rows = positions.type.getNumElements() / panels;
  for (int64_t row = rows - 1; row >= 0; --row) {
    if (row % getEncoding().getN() == 0)
      continue;
    for (int64_t panel = 0; panel < panels; ++panel) {
      char &own = positions.data[row * panels + panel];
      own = static_cast<char>(own - positions.data[(row - 1) * panels + panel] -
                              1);
    }
  }
  return packed;
}

//===----------------------------------------------------------------------===//
// In kernels
//===----------------------------------------------------------------------===//

bool DistancesAttr::hasOwnPositions() const { return true; }

/// Adds the distances of all blocks of the window that come before `block`.
Value DistancesAttr::readPosition(OpBuilder &b, Location loc, ValueRange tiles,
                                  Value block, Value panel) const {
  int64_t n = getEncoding().getN();
  Type element = cast<MemRefType>(tiles[1].getType()).getElementType();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value place = arith::RemUIOp::create(b, loc, block, constant(n));
  Value first = arith::SubIOp::create(b, loc, block, place);
  Value sum = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(element, 1));
  for (int64_t i = 0; i < n; ++i) {
    Value at = arith::AddIOp::create(b, loc, first, constant(i));
    // Behind `block` nothing is added, so that nothing there is read.
    Value isBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule,
                                           constant(i), place);
    at = arith::MinUIOp::create(b, loc, at, block);
    Value distance =
        memref::LoadOp::create(b, loc, tiles[1], ValueRange{at, panel});
    if (i > 0)
      distance = arith::AddIOp::create(b, loc, distance, one);
    Value next = arith::AddIOp::create(b, loc, sum, distance);
    sum = arith::SelectOp::create(b, loc, isBefore, next, sum);
  }
  return sum;
}
