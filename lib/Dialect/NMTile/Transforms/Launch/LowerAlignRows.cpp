//===- LowerAlignRows.cpp - copies of rows as kernels ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread copies 16 bytes of a row. Where the rows are aligned already the
// grid is empty, and no kernel is launched. Which of the two buffers to read is
// decided by the kernels that do, from the same number.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/UnalignedLoad.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERALIGNROWSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// A warp copies 32 neighbouring chunks of each of several rows.
static constexpr int64_t kThreads = 256, kWarp = 32, kRowsOfWarp = 4;
static constexpr int64_t kRows = kThreads / kWarp * kRowsOfWarp;
static constexpr int64_t kAccessBytes = 16;

namespace {

/// Emits the kernel of one copy, and what decides on it.
class RowCopy : IndexEmitter {
public:
  explicit RowCopy(AlignRowsOp op)
      : IndexEmitter(op, op.getLoc()), op(op), source(op.getSrc()),
        type(cast<MemRefType>(source.getType())), last(type.getRank() - 1),
        width(kAccessBytes * 8 / type.getElementTypeBitWidth()),
        unit(op.getAlignment() * 8 / type.getElementTypeBitWidth()) {
    Value padded = getPaddedBuffer(op.getDst());
    isPadded = padded != nullptr;
    target = isPadded ? padded : op.getDst();
  }

  /// Replaces the result.
  void emit();

private:
  Value countMisaligned(int64_t unit);
  Value atMostOne(AffineExpr number, OpFoldResult symbol);
  Value countCopied();
  void emitLaunch(Value misaligned);
  void emitChunk(SmallVector<Value> at);
  Value load(ArrayRef<Value> at, Value column);
  Value read(ArrayRef<Value> at, Value columns);
  Value choose(OpBuilder &at, Value misaligned);

  AlignRowsOp op;
  Value source, target;
  /// Rows of `target` are aligned, and end in padding up to whole accesses.
  bool isPadded;
  MemRefType type;
  /// Elements of an access, and of what rows must be a multiple of.
  int64_t last, width, unit;
};

} // namespace

/// Zero where all rows begin at multiples of so many elements.
Value RowCopy::countMisaligned(int64_t unit) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, source);
  AffineExpr sum = b.getAffineConstantExpr(0);
  SmallVector<OpFoldResult> numbers = metadata.getConstifiedMixedStrides();
  numbers.back() = metadata.getConstifiedMixedOffset();
  for (unsigned i = 0; i < numbers.size(); ++i)
    sum = sum + b.getAffineSymbolExpr(i) % unit;
  return getValueOrCreateConstantIndexOp(
      b, loc, affine::makeComposedFoldedAffineApply(b, loc, sum, numbers));
}

/// `number`, but 1 for all that are more.
Value RowCopy::atMostOne(AffineExpr number, OpFoldResult symbol) {
  AffineMap map = AffineMap::get(0, 1, {number, b.getAffineConstantExpr(1)},
                                 b.getContext());
  return getValueOrCreateConstantIndexOp(
      b, loc, affine::makeComposedFoldedAffineMin(b, loc, map, {symbol}));
}

/// Zero where no row has to be copied. Affine expressions alone: the manifest
/// has the grid of the copy as a formula.
Value RowCopy::countCopied() {
  if (op.getAlways())
    return constant(1);
  Value misaligned = countMisaligned(unit);
  if (!op.getFrom())
    return misaligned;
  AffineExpr symbol = b.getAffineSymbolExpr(0);
  Value isLong = atMostOne(symbol.floorDiv(static_cast<int64_t>(*op.getFrom())),
                           memref::getMixedSize(b, loc, source, last));
  return add(countMisaligned(width), mul(misaligned, isLong));
}

Value RowCopy::load(ArrayRef<Value> at, Value column) {
  SmallVector<Value> indices(at);
  indices.back() = column;
  return memref::LoadOp::create(b, loc, source, indices);
}

/// Copies the chunk at `at` if its row exists.
void RowCopy::emitChunk(SmallVector<Value> at) {
  OpBuilder::InsertionGuard guard(b);
  Value columns = memref::DimOp::create(b, loc, source, last);
  Value rows = memref::DimOp::create(b, loc, source, last - 1);
  Value column = at.back();
  auto exists = scf::IfOp::create(
      b, loc, both(isLess(at[last - 1], rows), isLess(column, columns)),
      /*withElseRegion=*/false);
  b.setInsertionPointToStart(exists.thenBlock());
  if (isPadded) {
    vector::StoreOp::create(b, loc, read(at, columns), target, at,
                            /*nontemporal=*/false, llvm::Align(kAccessBytes));
    return;
  }
  Value end = min(add(column, width), columns);
  auto rest = scf::ForOp::create(b, loc, column, end, constant(1));
  b.setInsertionPointToStart(rest.getBody());
  Value element = load(at, rest.getInductionVar());
  at.back() = rest.getInductionVar();
  memref::StoreOp::create(b, loc, element, target, at);
}

/// The chunk at `at`; what lies behind the row repeats its last element.
Value RowCopy::read(ArrayRef<Value> at, Value columns) {
  OpBuilder::InsertionGuard guard(b);
  auto vectorType = VectorType::get({width}, type.getElementType());
  UnalignedLoad shifted(b, loc, source);
  Value exists =
      compare(arith::CmpIPredicate::ule, add(at.back(), width), columns);
  auto ifOp = scf::IfOp::create(b, loc, TypeRange(vectorType),
                                both(exists, shifted.isInside(at)),
                                /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, shifted.load(at));
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value lastColumn = sub(columns, 1);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < width; ++i)
    elements.push_back(load(at, min(add(at.back(), i), lastColumn)));
  scf::YieldOp::create(
      b, loc,
      vector::FromElementsOp::create(b, loc, vectorType, elements).getResult());
  return ifOp.getResult(0);
}

void RowCopy::emitLaunch(Value misaligned) {
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, loc, source);
  auto count = [&](OpFoldResult extent, int64_t step) -> Value {
    return getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, b.getAffineSymbolExpr(0).ceilDiv(step), {extent}));
  };
  Value across = count(sizes[last], kWarp * width);
  Value ctas = mul(across, count(sizes[last - 1], kRows));
  Value any = atMostOne(b.getAffineSymbolExpr(0), misaligned);
  Value one = constant(1);
  Value batches =
      last == 2 ? getValueOrCreateConstantIndexOp(b, loc, sizes[0]) : one;
  auto launch = gpu::LaunchOp::create(b, loc, mul(ctas, any), one, batches,
                                      constant(kThreads), one, one);
  auto function = op->getParentOfType<func::FuncOp>();
  launch.setFunctionAttr(SymbolRefAttr::get(
      b.getContext(), (function.getSymName() + "_align").str()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launch.getBody().front());
  // A warp reads neighbouring elements of a row.
  Value block = launch.getBlockIds().x, thread = launch.getThreadIds().x;
  Value blockRow = div(block, across);
  Value blockColumn = sub(block, mul(blockRow, across));
  Value column = mul(add(mul(blockColumn, kWarp), rem(thread, kWarp)), width);
  Value row = add(mul(blockRow, kRows), div(thread, kWarp));
  for (int64_t i = 0; i < kRowsOfWarp; ++i) {
    SmallVector<Value> at(last + 1, launch.getBlockIds().z);
    at[last - 1] = add(row, i * (kThreads / kWarp));
    at[last] = column;
    emitChunk(at);
  }
  b.setInsertionPointToEnd(&launch.getBody().front());
  gpu::TerminatorOp::create(b, loc);
}

/// The buffer whose rows are aligned.
Value RowCopy::choose(OpBuilder &at, Value misaligned) {
  Type result = op.getResult().getType();
  Value direct = memref::CastOp::create(at, loc, result, source);
  Value copied = memref::CastOp::create(at, loc, result, op.getDst());
  IndexMath math{at, loc};
  return math.select(math.isEqual(misaligned, 0), direct, copied);
}

void RowCopy::emit() {
  Value misaligned = countCopied();
  emitLaunch(misaligned);
  if (op.getAlways()) {
    Value copied =
        memref::CastOp::create(b, loc, op.getResult().getType(), op.getDst());
    return op.getResult().replaceAllUsesWith(copied);
  }
  // Kernels choose for themselves: the host only hands buffers over.
  llvm::MapVector<gpu::LaunchOp, Value> chosen;
  for (OpOperand &use : llvm::make_early_inc_range(op.getResult().getUses())) {
    if (isa<memref::DimOp>(use.getOwner())) {
      use.set(source);
      continue;
    }
    auto launch = use.getOwner()->getParentOfType<gpu::LaunchOp>();
    Value &value = chosen[launch];
    if (!value && launch) {
      auto inside = OpBuilder::atBlockBegin(&launch.getBody().front());
      value = choose(inside, misaligned);
    } else if (!value) {
      value = choose(b, misaligned);
    }
    use.set(value);
  }
}

namespace {
struct LowerAlignRows
    : public nm_sparse::impl::NMSparseLowerAlignRowsPassBase<LowerAlignRows> {
  void runOnOperation() override {
    SmallVector<AlignRowsOp> ops;
    getOperation().walk([&](AlignRowsOp op) { ops.push_back(op); });
    for (AlignRowsOp op : ops) {
      auto type = dyn_cast<MemRefType>(op.getSrc().getType());
      if (!type || type.getRank() > 3 || !type.isLastDimUnitStride()) {
        op.emitOpError("must be on buffers of two or three dimensions whose "
                       "rows have no gaps, got ")
            << op.getSrc().getType();
        return signalPassFailure();
      }
      RowCopy(op).emit();
      op.erase();
    }
  }
};
} // namespace
