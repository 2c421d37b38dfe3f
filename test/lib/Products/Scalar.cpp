//===- Scalar.cpp - the shortest product ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that a product has to say, in one file: what it asks of a schedule, which
// thread owns what, and the code of one K step.
//
//===----------------------------------------------------------------------===//

#include "Products/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_test;

#include "Products/ScalarDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Products/ScalarAttrs.cpp.inc"

void NMTestDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Products/ScalarAttrs.cpp.inc"
      >();
}

void nm_test::registerTestProducts(DialectRegistry &registry) {
  registry.insert<NMTestDialect>();
}

//===----------------------------------------------------------------------===//
// Requirements on a schedule
//===----------------------------------------------------------------------===//

/// The lanes of the warp, 4 x 8.
static constexpr int64_t kTokens = 4, kOutputs = 8;

StringRef ScalarAttr::getProductName() const { return "scalar"; }

int64_t ScalarAttr::getNumWarps() const { return 1; }

LogicalResult
ScalarAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                       int64_t tokens, int64_t outputs) const {
  if (tokens != kTokens || outputs != kOutputs)
    return emitError() << "a scalar tile must be " << kTokens << " x "
                       << kOutputs << ", got " << tokens << " x " << outputs;
  return success();
}

LogicalResult
ScalarAttr::verifyTransfers(function_ref<InFlightDiagnostic()> emitError,
                            const TransfersAttr &transfers, int64_t) const {
  if (!transfers.areDirect())
    return emitError()
           << "scalar reads global memory: transfers must be direct";
  return success();
}

LogicalResult
ScalarAttr::verifyProblem(function_ref<InFlightDiagnostic()> emitError,
                          const ScheduleAttr &, const EncodingAttr &,
                          Type element) const {
  if (!element.isF32())
    return emitError() << "has a schedule with product = scalar, which "
                          "multiplies f32, but operands of "
                       << element;
  return success();
}

//===----------------------------------------------------------------------===//
// Which thread owns what
//===----------------------------------------------------------------------===//

FailureOr<AccumulatorAttr> ScalarAttr::layOut(TileMatmulOp) const {
  return makeAccumulator(
      getContext(),
      {{TileDim::Outputs, kOutputs, 1}, {TileDim::Tokens, 32 / kOutputs, 1}},
      /*units=*/{}, /*elements=*/{});
}

//===----------------------------------------------------------------------===//
// One K step
//===----------------------------------------------------------------------===//

/// i1: `at` lies inside of `buffer`.
static Value isInside(OpBuilder &b, Location loc, Value buffer, ValueRange at) {
  Value inside;
  for (auto [dim, index] : llvm::enumerate(at)) {
    Value extent = memref::DimOp::create(b, loc, buffer, dim);
    Value less =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, extent);
    inside =
        inside ? arith::AndIOp::create(b, loc, inside, less).getResult() : less;
  }
  return inside;
}

/// The element at `at`, or zero outside of `buffer`.
static Value loadOrZero(OpBuilder &b, Location loc, Value buffer,
                        ValueRange at) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  auto ifOp = scf::IfOp::create(b, loc, element, isInside(b, loc, buffer, at),
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc,
                       memref::LoadOp::create(b, loc, buffer, at).getResult());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(
      b, loc,
      arith::ConstantOp::create(b, loc, b.getZeroAttr(element)).getResult());
  return ifOp.getResult(0);
}

LogicalResult ScalarAttr::emit(OpBuilder &b, TileMatmulOp op,
                               const ThreadLayout &layout,
                               MutableArrayRef<Value> accumulators) const {
  Location loc = op.getLoc();
  EncodingAttr encoding = op.getEncoding();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value panel = emitPanel(b, loc, op, layout.output);
  auto loop = scf::ForOp::create(b, loc, constant(0),
                                 constant(op.getSchedule().getStepRows()),
                                 constant(1), ValueRange(accumulators));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  DenseRow place(b, loc, encoding.getOuter());
  Value block = place.getBlock(row);
  Value position = loadOrZero(b, loc, op.getIndex(), {block, panel});
  Value dense = place.get(row, place.getWindow(block), position);
  SmallVector<Value> at = {dense, layout.token};
  if (op.getLhsOrder() == MajorOrder::K)
    std::swap(at[0], at[1]);
  Value x = loadOrZero(b, loc, op.getLhs(), at);
  Value weight = loadOrZero(b, loc, op.getRhs(), {row, layout.output});
  Value sum = math::FmaOp::create(b, loc, x, weight, loop.getRegionIterArg(0));
  scf::YieldOp::create(b, loc, sum);
  accumulators[0] = loop.getResult(0);
  return success();
}
