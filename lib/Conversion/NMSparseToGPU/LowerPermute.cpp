//===- LowerPermute.cpp - permutations as kernels -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread copies one element, and a CTA the neighbours of a row: what is read
// lies together, and so does what is written. Where the order changes along the
// rows, a CTA brings some whole rows to shared memory first, so that only there
// elements are scattered; rows that are too long for that are not.
//
//===----------------------------------------------------------------------===//

#include "StridedBuffer.h"
#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERPERMUTEPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kThreads = 256;
/// Bytes of a row that shared memory may hold, and of the rows that a CTA takes
/// together, so that it reads the permutation once.
static constexpr int64_t kRowBytes = 48 * 1024, kRowsBytes = 32 * 1024;
/// Bytes that a thread reads or writes at once.
static constexpr int64_t kAccessBytes = 16;
/// Rows that a CTA takes together at most.
static constexpr int64_t kMostRows = 4;

/// Copies the element at `at` to where it belongs.
static void copyElement(OpBuilder &b, PermuteOp op, ArrayRef<Value> at,
                        Value source, Value perm, Value target) {
  Location loc = op.getLoc();
  auto dim = static_cast<int64_t>(op.getDim());
  SmallVector<Value> from(at), to(at), where;
  if (op.getBatch())
    where.push_back(at[*op.getBatch()]);
  where.push_back(at[dim]);
  Value other = arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, perm, where));
  (op.getInverse() ? from : to)[dim] = other;
  memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, source, from),
                          target, to);
}

namespace {
/// Where and how large things are in a kernel.
struct Operands {
  Value source, perm, target;
  SmallVector<Value> sizes;
};
} // namespace

/// Rows that a CTA has in shared memory; 0 where elements are copied one by
/// one.
static int64_t getRowsOfCTA(PermuteOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rank = type.getRank();
  if (rank < 2 || static_cast<int64_t>(op.getDim()) + 1 != rank ||
      type.isDynamicDim(rank - 1) || !type.getElementType().isIntOrFloat() ||
      (op.getBatch() && (rank < 3 || *op.getBatch() != 0)))
    return 0;
  int64_t bytes = type.getShape().back() * (type.getElementTypeBitWidth() / 8);
  if (bytes == 0 || bytes > kRowBytes)
    return 0;
  return std::clamp<int64_t>(kRowsBytes / bytes, 1, kMostRows);
}

namespace {
/// Copies some rows through shared memory.
class RowCopy {
public:
  RowCopy(OpBuilder &b, PermuteOp op, const Operands &operands,
          gpu::LaunchOp launch, int64_t rows)
      : b(b), loc(op.getLoc()), op(op), operands(operands), launch(launch),
        rows(rows), type(cast<RankedTensorType>(op.getType())) {}

  /// Those from row `block.x * rows` on.
  void run();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  SmallVector<Value> getIndices(Value row, Value column);
  Value lookUp(Value column, int64_t offset);
  /// Calls `body` for each row of the CTA that exists, and for each `width`
  /// neighbours of a row that a thread has.
  void forRows(function_ref<void(Value inTile, Value row)> body);
  void forColumns(int64_t width, function_ref<void(Value column)> body);
  Value load(Value buffer, ValueRange at, int64_t width);
  void store(Value value, Value buffer, ValueRange at, int64_t width);
  void readRows(Value source, int64_t width);
  void writeRows(int64_t width);
  Value isAligned();
  Value getUnitStrideSource();

  OpBuilder &b;
  Location loc;
  PermuteOp op;
  Operands operands;
  gpu::LaunchOp launch;
  int64_t rows;
  RankedTensorType type;
  Value tile, first;
};
} // namespace

SmallVector<Value> RowCopy::getIndices(Value row, Value column) {
  SmallVector<Value> at = {row, column};
  if (type.getRank() > 2)
    at.insert(at.begin(), launch.getBlockIds().z);
  return at;
}

Value RowCopy::lookUp(Value column, int64_t offset) {
  SmallVector<Value> where;
  if (op.getBatch())
    where.push_back(launch.getBlockIds().z);
  where.push_back(
      offset ? b.createOrFold<arith::AddIOp>(loc, column, constant(offset))
             : column);
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      memref::LoadOp::create(b, loc, operands.perm, where));
}

void RowCopy::forRows(function_ref<void(Value inTile, Value row)> body) {
  for (int64_t i = 0; i < rows; ++i) {
    Value row = arith::AddIOp::create(b, loc, first, constant(i));
    OpBuilder::InsertionGuard guard(b);
    if (i > 0) {
      Value exists =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row,
                                operands.sizes[type.getRank() - 2]);
      auto ifOp = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    body(constant(i), row);
  }
}

void RowCopy::forColumns(int64_t width, function_ref<void(Value column)> body) {
  Value begin =
      arith::MulIOp::create(b, loc, launch.getThreadIds().x, constant(width));
  auto loop = scf::ForOp::create(b, loc, begin, operands.sizes.back(),
                                 constant(kThreads * width));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value RowCopy::load(Value buffer, ValueRange at, int64_t width) {
  if (width == 1)
    return memref::LoadOp::create(b, loc, buffer, at);
  return vector::LoadOp::create(
      b, loc, VectorType::get({width}, type.getElementType()), buffer, at,
      /*nontemporal=*/false, llvm::Align(kAccessBytes));
}

void RowCopy::store(Value value, Value buffer, ValueRange at, int64_t width) {
  if (width == 1)
    memref::StoreOp::create(b, loc, value, buffer, at);
  else
    vector::StoreOp::create(b, loc, value, buffer, at, /*nontemporal=*/false,
                            llvm::Align(kAccessBytes));
}

void RowCopy::readRows(Value source, int64_t width) {
  forColumns(width, [&](Value column) {
    SmallVector<Value> places;
    for (int64_t i = 0; i < width && !op.getInverse(); ++i)
      places.push_back(lookUp(column, i));
    forRows([&](Value inTile, Value row) {
      Value read = load(source, getIndices(row, column), width);
      if (op.getInverse())
        return store(read, tile, {inTile, column}, width);
      for (auto [i, place] : llvm::enumerate(places)) {
        Value element =
            width == 1 ? read : vector::ExtractOp::create(b, loc, read, i);
        store(element, tile, {inTile, place}, 1);
      }
    });
  });
}

void RowCopy::writeRows(int64_t width) {
  forColumns(width, [&](Value column) {
    SmallVector<Value> places;
    for (int64_t i = 0; i < width && op.getInverse(); ++i)
      places.push_back(lookUp(column, i));
    forRows([&](Value inTile, Value row) {
      auto elements = llvm::map_to_vector(
          places, [&](Value place) { return load(tile, {inTile, place}, 1); });
      Value value =
          !op.getInverse() ? load(tile, {inTile, column}, width)
          : width == 1
              ? elements.front()
              : vector::FromElementsOp::create(
                    b, loc, VectorType::get({width}, type.getElementType()),
                    elements)
                    .getResult();
      store(value, operands.target, getIndices(row, column), width);
    });
  });
}

/// i1: rows of the source lie together, and begin at multiples of an access.
Value RowCopy::isAligned() {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, operands.source);
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  auto inBytes = [&](Value elements) -> Value {
    return arith::MulIOp::create(b, loc, elements, constant(bytes));
  };
  Value bits = arith::AddIOp::create(
      b, loc,
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, operands.source),
      inBytes(metadata.getOffset()));
  for (Value stride : metadata.getStrides().drop_back())
    bits = arith::OrIOp::create(b, loc, bits, inBytes(stride));
  auto equals = [&](Value a, int64_t value) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a,
                                 constant(value));
  };
  return arith::AndIOp::create(
      b, loc,
      equals(arith::RemUIOp::create(b, loc, bits, constant(kAccessBytes)), 0),
      equals(metadata.getStrides().back(), 1));
}

/// The source, whose rows are known to lie together.
Value RowCopy::getUnitStrideSource() {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, operands.source);
  SmallVector<OpFoldResult> strides = metadata.getConstifiedMixedStrides();
  strides.back() = b.getIndexAttr(1);
  return memref::ReinterpretCastOp::create(
      b, loc, metadata.getBaseBuffer(), metadata.getConstifiedMixedOffset(),
      metadata.getConstifiedMixedSizes(), strides);
}

void RowCopy::run() {
  auto space = gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  int64_t length = type.getShape().back();
  tile = memref::AllocOp::create(
      b, loc,
      MemRefType::get({rows, length}, type.getElementType(),
                      MemRefLayoutAttrInterface(), space));
  first = arith::MulIOp::create(b, loc, launch.getBlockIds().x, constant(rows));
  int64_t width = kAccessBytes / (type.getElementTypeBitWidth() / 8);
  if (length % width != 0)
    width = 1;
  if (width == 1) {
    readRows(operands.source, 1);
  } else {
    auto ifOp = scf::IfOp::create(b, loc, isAligned(), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    readRows(getUnitStrideSource(), width);
    b.setInsertionPointToStart(ifOp.elseBlock());
    readRows(operands.source, 1);
  }
  gpu::BarrierOp::create(b, loc);
  writeRows(width);
}

static void lower(IRRewriter &rewriter, PermuteOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rank = type.getRank();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value source = getStridedBuffer(rewriter, loc, op.getSource());
  Value perm = getStridedBuffer(rewriter, loc, op.getPerm());
  SmallVector<Value> sizes, dynamic;
  for (int64_t dim = 0; dim < rank; ++dim) {
    sizes.push_back(
        rewriter.createOrFold<memref::DimOp>(loc, source, constant(dim)));
    if (type.isDynamicDim(dim))
      dynamic.push_back(sizes.back());
  }
  Value target = memref::AllocOp::create(
      rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
      dynamic);

  // Rows, of which there may be the most, on x, their pieces on y.
  Value one = constant(1);
  int64_t rowsOfCTA = getRowsOfCTA(op);
  auto divide = [&](Value size, int64_t by) {
    return rewriter.createOrFold<arith::CeilDivUIOp>(loc, size, constant(by));
  };
  Value rows = rank > 1 ? sizes[rank - 2] : one;
  auto launch = gpu::LaunchOp::create(
      rewriter, loc, rowsOfCTA ? divide(rows, rowsOfCTA) : rows,
      rowsOfCTA ? one : divide(sizes.back(), kThreads),
      rank > 2 ? sizes.front() : one, constant(kThreads), one, one);
  auto function = op->getParentOfType<func::FuncOp>();
  launch.setFunctionAttr(SymbolRefAttr::get(
      rewriter.getContext(), (function.getSymName() + "_permute").str()));
  if (rowsOfCTA) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    RowCopy(rewriter, op, {source, perm, target, sizes}, launch, rowsOfCTA)
        .run();
    gpu::TerminatorOp::create(rewriter, loc);
  } else {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    gpu::KernelDim3 block = launch.getBlockIds();
    Value column = arith::AddIOp::create(
        rewriter, loc,
        arith::MulIOp::create(rewriter, loc, block.y, constant(kThreads)),
        launch.getThreadIds().x);
    Value inside = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, column, sizes.back());
    auto ifOp = scf::IfOp::create(rewriter, loc, inside,
                                  /*withElseRegion=*/false);
    gpu::TerminatorOp::create(rewriter, loc);
    rewriter.setInsertionPointToStart(ifOp.thenBlock());
    SmallVector<Value> at = {column};
    if (rank > 1)
      at.insert(at.begin(), block.x);
    if (rank > 2)
      at.insert(at.begin(), block.z);
    copyElement(rewriter, op, at, source, perm, target);
  }
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      op, type, target, /*restrict=*/true, /*writable=*/true);
}

namespace {
struct LowerPermute
    : public nm_sparse::impl::NMSparseLowerPermutePassBase<LowerPermute> {
  void runOnOperation() override {
    SmallVector<PermuteOp> ops;
    getOperation()->walk([&](PermuteOp op) { ops.push_back(op); });
    for (PermuteOp op : ops)
      if (cast<RankedTensorType>(op.getType()).getRank() > 3) {
        op.emitOpError("has rank ")
            << cast<RankedTensorType>(op.getType()).getRank()
            << ", a kernel takes at most 3 dimensions";
        return signalPassFailure();
      }
    IRRewriter rewriter(&getContext());
    for (PermuteOp op : ops)
      lower(rewriter, op);
  }
};
} // namespace
