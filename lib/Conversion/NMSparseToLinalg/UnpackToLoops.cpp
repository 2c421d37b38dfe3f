//===- UnpackToLoops.cpp - dense weights, element by element --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UnpackToLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The row of the array that `level` packs, of which row `row` of its values
/// holds output `output`.
static Value buildPackedRow(OpBuilder &b, Location loc,
                            const SparsityLevel &level, Value positions,
                            ValueRange batch, Value row, Value output) {
  DenseRow packed(b, loc, level);
  Value block = packed.getBlock(row);
  SmallVector<Value> at(batch);
  at.append({block, b.createOrFold<arith::DivUIOp>(
                        loc, output,
                        arith::ConstantIndexOp::create(b, loc, level.blockN))});
  Value position = arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, positions, at));
  return packed.get(row, packed.getWindow(block), position);
}

/// The number at place `place` of a batch entry of `component`.
Value nm_sparse::extractIndex(OpBuilder &b, Location loc, Value component,
                              ValueRange batch, Value place) {
  SmallVector<Value> at(batch);
  at.push_back(place);
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, component, at));
}

/// `dense` with the element of the values at `at` in its place.
static Value insertStored(OpBuilder &b, Location loc, UnpackOp op, Value dense,
                          ValueRange at) {
  auto type = cast<RankedTensorType>(op.getType());
  EncodingAttr encoding = op.getEncoding();
  PackedShape shape = getPackedShape(type, encoding);
  ValueRange batch = at.drop_back(2);
  Value k = at[at.size() - 2], output = at.back(), place = output;
  SmallVector<WeightComponent> components = encoding.getComponents(type);
  // From the values outwards, each level to what it packs.
  for (const WeightComponent &component : llvm::reverse(components)) {
    if (component.role == ComponentRole::Permutation)
      output =
          extractIndex(b, loc, op.getComponent(component.name), batch, place);
    if (component.role == ComponentRole::Positions)
      k = buildPackedRow(b, loc, encoding.getLevels()[component.level],
                         op.getComponent(component.name), batch, k, place);
  }
  Value element =
      tensor::ExtractOp::create(b, loc, op.getComponent(kValuesComponent), at);
  SmallVector<Value> to(batch);
  bool transposed = encoding.getDim() == type.getRank() - 1;
  to.append({transposed ? output : k, transposed ? k : output});
  auto insert = [&](OpBuilder &b) -> Value {
    return tensor::InsertOp::create(b, loc, element, dense, to);
  };
  if (shape.k == shape.windows * encoding.getWindowRows())
    return insert(b);
  // Fillers of the last window may lie past the end of the weight.
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, k,
                            arith::ConstantIndexOp::create(b, loc, shape.k));
  auto guarded = scf::IfOp::create(
      b, loc, inside,
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, insert(b)); },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, dense); });
  return guarded.getResult(0);
}

namespace {

/// Zero fill, then for each stored row r and output o (and batch) the element
/// is inserted at the row k that the levels name, if k < K.
struct UnpackToLoops : public OpRewritePattern<UnpackOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(UnpackOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    auto valuesType =
        cast<RankedTensorType>(op.getComponent(kValuesComponent).getType());
    if (getEncoding(type))
      return rewriter.notifyMatchFailure(op, "result is encoded");
    if (op.getEncoding().isFree())
      return rewriter.notifyMatchFailure(op, "the runtime unpacks it");
    PackedShape shape = getPackedShape(type, op.getEncoding());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    Value dense =
        linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);

    SmallVector<Value> lower, upper, step;
    SmallVector<int64_t> extents(valuesType.getShape());
    extents.back() = shape.outputs;
    for (int64_t extent : extents) {
      lower.push_back(constant(0));
      upper.push_back(constant(extent));
      step.push_back(constant(1));
    }
    scf::LoopNest nest = scf::buildLoopNest(
        rewriter, loc, lower, upper, step, dense,
        [&](OpBuilder &b, Location l, ValueRange ivs, ValueRange iterArgs) {
          return scf::ValueVector{insertStored(b, l, op, iterArgs[0], ivs)};
        });
    rewriter.replaceOp(op, nest.results[0]);
    return success();
  }
};

} // namespace

void nm_sparse::populateUnpackToLoopsPatterns(RewritePatternSet &patterns) {
  patterns.add<UnpackToLoops>(patterns.getContext());
}
