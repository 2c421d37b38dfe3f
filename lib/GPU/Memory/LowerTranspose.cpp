//===- LowerTranspose.cpp - transpositions as kernels ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread exchanges the rows and columns of one small square block in
// registers: 16 x 16 elements of 8 bits, 8 x 8 of 16, or 4 x 4 of 32. Each row
// of it is 16 bytes on both sides. 8 lanes lie side by side along the rows that
// are written, so a warp writes whole lines of 128 bytes, and 4 along those
// that are read, 64 bytes. Nothing goes through shared memory: no barrier keeps
// a warp from having its 8 reads under way, and there are no banks to conflict.
//
// Where the rows of a buffer of the program end in padding, blocks there are
// whole, too: what lies past the last row of the source is read from that row.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/UnalignedLoad.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Support/Exchange.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERTRANSPOSEPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Threads of a CTA; they hold 16 x 16 blocks, each warp 8 along `dim` and 4
/// along the last dimension of the source.
constexpr int64_t kThreads = 256, kBlocks = 16, kWarpRows = 8;
constexpr int64_t kAccessBytes = 16;

/// Emits the code of one thread.
class TransposeKernel {
public:
  /// `target` may have longer rows than `source` has rows, to be filled with
  /// anything.
  TransposeKernel(OpBuilder &b, Location loc, Value source, Value target,
                  int64_t dim, bool isPadded)
      : b(b), loc(loc), source(source), target(target), isPadded(isPadded),
        dim(dim), last(cast<MemRefType>(source.getType()).getRank() - 1),
        width(kAccessBytes * 8 /
              cast<MemRefType>(source.getType()).getElementTypeBitWidth()),
        entry(last + 1) {}

  /// Emits the code of the CTA whose first blocks are `rowBlock` along `dim`
  /// and `columnBlock` along the last dimension; `batch` is the index of the
  /// remaining dimension. Without it, the blocks of all indices of those that
  /// remain follow one another along `dim`.
  void emit(Value thread, Value rowBlock, Value columnBlock, Value batch) {
    Value lane = remainder(thread, 32), warp = quotient(thread, 32);
    rowBlock = add(rowBlock, add(times(remainder(warp, 2), kWarpRows),
                                 remainder(lane, kWarpRows)));
    columnBlock = add(columnBlock, add(times(quotient(warp, 2), 32 / kWarpRows),
                                       quotient(lane, kWarpRows)));
    rows = memref::DimOp::create(b, loc, source, dim);
    columns = memref::DimOp::create(b, loc, source, last);
    OpBuilder::InsertionGuard guard(b);
    if (!batch) {
      Value blocks = arith::CeilDivUIOp::create(b, loc, rows, constant(width));
      batch = arith::DivUIOp::create(b, loc, rowBlock, blocks);
      rowBlock = arith::RemUIOp::create(b, loc, rowBlock, blocks);
      Value end = constant(1);
      for (int64_t other : getOthers())
        end = b.createOrFold<arith::MulIOp>(
            loc, end, memref::DimOp::create(b, loc, source, other));
      Value exists =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, batch, end);
      auto ifOp = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    // The first of several takes what is left.
    SmallVector<int64_t> others = getOthers();
    for (int64_t other : llvm::reverse(
             ArrayRef(others).drop_front(std::min<size_t>(1, others.size())))) {
      Value extent = memref::DimOp::create(b, loc, source, other);
      entry[other] = arith::RemUIOp::create(b, loc, batch, extent);
      batch = arith::DivUIOp::create(b, loc, batch, extent);
    }
    if (!others.empty())
      entry[others.front()] = batch;
    firstRow = times(rowBlock, width);
    firstColumn = times(columnBlock, width);
    Value end = isPadded ? memref::DimOp::create(b, loc, target, last) : rows;
    Value wide = both(isInside(firstRow, end), isAligned(target));
    auto ifOp = scf::IfOp::create(b, loc, wide, /*withElseRegion=*/true);
    b.setInsertionPointToStart(ifOp.thenBlock());
    emitBlock();
    b.setInsertionPointToStart(ifOp.elseBlock());
    emitElements();
  }

private:
  /// The dimensions that stay where they are.
  SmallVector<int64_t> getOthers() const {
    SmallVector<int64_t> others;
    for (int64_t other = 0; other < last; ++other)
      if (other != dim)
        others.push_back(other);
    return others;
  }

  VectorType getLineType() {
    return VectorType::get({width},
                           cast<MemRefType>(source.getType()).getElementType());
  }

  /// The row of the source that is read for line `i` of the block.
  Value getRow(int64_t i) {
    Value row = add(firstRow, constant(i));
    if (!isPadded)
      return row;
    return arith::MinSIOp::create(
        b, loc, row, arith::SubIOp::create(b, loc, rows, constant(1)));
  }

  SmallVector<Value> loadLines() {
    SmallVector<Value> lines;
    for (int64_t i = 0; i < width; ++i)
      lines.push_back(vector::LoadOp::create(
          b, loc, getLineType(), source, getIndices(getRow(i), firstColumn),
          /*nontemporal=*/false, llvm::Align(kAccessBytes)));
    return lines;
  }

  /// The same from rows that are not aligned.
  SmallVector<Value> shiftLines(UnalignedLoad &load) {
    SmallVector<Value> lines;
    for (int64_t i = 0; i < width; ++i)
      lines.push_back(load.load(getIndices(getRow(i), firstColumn)));
    return lines;
  }

  /// The same element by element; the last column stands for those past it.
  SmallVector<Value> loadElements() {
    SmallVector<Value> lines;
    Value lastColumn = arith::SubIOp::create(b, loc, columns, constant(1));
    for (int64_t i = 0; i < width; ++i) {
      Value row = getRow(i);
      SmallVector<Value> elements;
      for (int64_t j = 0; j < width; ++j) {
        Value column = arith::MinSIOp::create(
            b, loc, add(firstColumn, constant(j)), lastColumn);
        elements.push_back(
            memref::LoadOp::create(b, loc, source, getIndices(row, column)));
      }
      lines.push_back(
          vector::FromElementsOp::create(b, loc, getLineType(), elements));
    }
    return lines;
  }

  /// The lines of a block, in the way that their place allows.
  SmallVector<Value> readBlock() {
    SmallVector<Type> types(width, getLineType());
    OpBuilder::InsertionGuard guard(b);
    Value whole = isInside(firstColumn, columns);
    auto wide = scf::IfOp::create(b, loc, types, both(whole, isAligned(source)),
                                  /*withElseRegion=*/true);
    b.setInsertionPointToStart(wide.thenBlock());
    scf::YieldOp::create(b, loc, loadLines());
    b.setInsertionPointToStart(wide.elseBlock());
    UnalignedLoad load(b, loc, source);
    Value inside =
        both(load.isInside(getIndices(getRow(0), firstColumn)),
             load.isInside(getIndices(getRow(width - 1), firstColumn)));
    auto shifted = scf::IfOp::create(b, loc, types, both(whole, inside),
                                     /*withElseRegion=*/true);
    scf::YieldOp::create(b, loc, shifted.getResults());
    b.setInsertionPointToStart(shifted.thenBlock());
    scf::YieldOp::create(b, loc, shiftLines(load));
    b.setInsertionPointToStart(shifted.elseBlock());
    scf::YieldOp::create(b, loc, loadElements());
    return SmallVector<Value>(wide.getResults());
  }

  /// A block of whole, aligned rows of the target.
  void emitBlock() {
    Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                      firstColumn, columns);
    auto inside = scf::IfOp::create(b, loc, any, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(inside.thenBlock());
    SmallVector<Value> lines = readBlock();
    for (int64_t j = 0; j < width; ++j) {
      Value column = add(firstColumn, constant(j));
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           column, columns);
      auto store = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(store.thenBlock());
      SmallVector<Value> elements;
      for (Value line : lines)
        elements.push_back(vector::ExtractOp::create(b, loc, line, j));
      Value line =
          vector::FromElementsOp::create(b, loc, getLineType(), elements);
      vector::StoreOp::create(b, loc, line, target,
                              getIndices(column, firstRow),
                              /*nontemporal=*/false, llvm::Align(kAccessBytes));
    }
  }

  /// The elements of a block that exist, one by one.
  void emitElements() {
    auto count = [&](Value first, Value extent) -> Value {
      return arith::MinSIOp::create(
          b, loc, constant(width),
          arith::SubIOp::create(b, loc, extent, first));
    };
    Value zero = constant(0), one = constant(1);
    Value numRows = count(firstRow, rows);
    Value numColumns = count(firstColumn, columns);
    auto byColumn = scf::ForOp::create(b, loc, zero, numColumns, one);
    b.setInsertionPointToStart(byColumn.getBody());
    auto byRow = scf::ForOp::create(b, loc, zero, numRows, one);
    b.setInsertionPointToStart(byRow.getBody());
    Value row = add(firstRow, byRow.getInductionVar());
    Value column = add(firstColumn, byColumn.getInductionVar());
    Value element =
        memref::LoadOp::create(b, loc, source, getIndices(row, column));
    memref::StoreOp::create(b, loc, element, target, getIndices(column, row));
  }

  SmallVector<Value> getIndices(Value atDim, Value atLast) {
    SmallVector<Value> indices(entry);
    indices[dim] = atDim;
    indices[last] = atLast;
    return indices;
  }

  Value isInside(Value first, Value extent) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                 add(first, constant(width)), extent);
  }

  /// i1: all rows of `buffer` start at multiples of 16 bytes.
  Value isAligned(Value buffer) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
    Value elements = metadata.getOffset();
    for (Value stride : llvm::drop_end(metadata.getStrides()))
      elements = arith::OrIOp::create(b, loc, elements, stride);
    Value bits = arith::OrIOp::create(
        b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer),
        times(elements, kAccessBytes / width));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 remainder(bits, kAccessBytes), constant(0));
  }

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value times(Value x, int64_t v) {
    return b.createOrFold<arith::MulIOp>(loc, x, constant(v));
  }
  Value quotient(Value x, int64_t v) {
    return b.createOrFold<arith::DivUIOp>(loc, x, constant(v));
  }
  Value remainder(Value x, int64_t v) {
    return b.createOrFold<arith::RemUIOp>(loc, x, constant(v));
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }

  OpBuilder &b;
  Location loc;
  Value source, target;
  bool isPadded;
  int64_t dim, last, width;
  /// Indices of the dimensions that stay where they are.
  SmallVector<Value> entry;
  Value firstRow, firstColumn, rows, columns;
};

/// The dimension that `op` exchanges with the last one.
std::optional<int64_t> getExchangedDim(linalg::TransposeOp op) {
  auto rank = static_cast<int64_t>(op.getPermutation().size());
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    if (op.getPermutation() == ArrayRef(getExchange(rank, dim)))
      return dim;
  return std::nullopt;
}

struct TransposeLowering : public OpRewritePattern<linalg::TransposeOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    if (op->getParentOfType<gpu::LaunchOp>() ||
        op->getParentOfType<gpu::GPUFuncOp>())
      return rewriter.notifyMatchFailure(op, "inside of a kernel");
    auto source = cast<MemRefType>(op.getInput().getType());
    auto target = cast<MemRefType>(op.getInit().getType());
    std::optional<int64_t> dim = getExchangedDim(op);
    if (!dim || source.getRank() > 4)
      return rewriter.notifyMatchFailure(
          op, "does not exchange the last of two to four dimensions");
    int64_t bits = source.getElementType().isIntOrFloat()
                       ? source.getElementTypeBitWidth()
                       : 0;
    if (bits != 8 && bits != 16 && bits != 32)
      return rewriter.notifyMatchFailure(op,
                                         "elements are not 8, 16 or 32 bits");
    if (!source.isLastDimUnitStride() || !target.isLastDimUnitStride())
      return rewriter.notifyMatchFailure(op, "rows are not contiguous");
    int64_t last = source.getRank() - 1;
    int64_t side = kBlocks * kAccessBytes * 8 / bits;

    Location loc = op.getLoc();
    SmallVector<OpFoldResult> sizes =
        memref::getMixedSizes(rewriter, loc, op.getInput());
    AffineExpr size = rewriter.getAffineSymbolExpr(0);
    auto count = [&](int64_t extent, int64_t step) -> Value {
      return getValueOrCreateConstantIndexOp(
          rewriter, loc,
          affine::makeComposedFoldedAffineApply(
              rewriter, loc, size.ceilDiv(step), {sizes[extent]}));
    };
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    Value threads = arith::ConstantIndexOp::create(rewriter, loc, kThreads);
    // Tokens, the rows of what is transposed, lie on grid x as in products.
    // Without any, or without batches, the grid is empty, and the runtime does
    // not launch it.
    // A CTA takes the blocks of many matrices of few rows, such as the images
    // of a batch at many pixels.
    bool joins = last > 2 || (last == 2 && !(source.getDimSize(*dim) >= side));
    Value rowCTAs = count(*dim, side), batches = one;
    if (joins) {
      AffineExpr blocks = size.ceilDiv(side / kBlocks);
      SmallVector<OpFoldResult> extents = {sizes[*dim]};
      for (int64_t other = 0; other < last; ++other)
        if (other != *dim) {
          blocks = blocks * rewriter.getAffineSymbolExpr(extents.size());
          extents.push_back(sizes[other]);
        }
      rowCTAs = getValueOrCreateConstantIndexOp(
          rewriter, loc,
          affine::makeComposedFoldedAffineApply(
              rewriter, loc, blocks.ceilDiv(kBlocks), extents));
    } else if (last == 2) {
      batches = getValueOrCreateConstantIndexOp(rewriter, loc, sizes[1 - *dim]);
    }
    auto launch = gpu::LaunchOp::create(
        rewriter, loc, rowCTAs, count(last, side), batches, threads, one, one);
    auto function = op->getParentOfType<func::FuncOp>();
    launch.setFunctionAttr(SymbolRefAttr::get(
        rewriter.getContext(), (function.getSymName() + "_transpose").str()));
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    gpu::KernelDim3 ids = launch.getBlockIds();
    Value step = arith::ConstantIndexOp::create(rewriter, loc, kBlocks);
    Value padded = getPaddedBuffer(op.getInit());
    TransposeKernel(rewriter, loc, op.getInput(),
                    padded ? padded : op.getInit(), *dim, padded != nullptr)
        .emit(launch.getThreadIds().x,
              arith::MulIOp::create(rewriter, loc, ids.x, step),
              arith::MulIOp::create(rewriter, loc, ids.y, step),
              joins ? Value() : ids.z);
    gpu::TerminatorOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTranspose
    : public nm_sparse::impl::NMSparseLowerTransposePassBase<LowerTranspose> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<TransposeLowering>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
