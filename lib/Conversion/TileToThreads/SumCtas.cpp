//===- SumCtas.cpp - the sum of what the CTAs of a cluster have -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"
#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct SumCtasLowering : TilePattern<SumCtasOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(SumCtasOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getShares().getType());
    Type element = type.getElementType();
    auto access = VectorType::get({kPieceAccess}, element);
    auto runs = layout.getRuns(op.getTokensContiguous(), kPieceAccess);
    if (static_cast<int64_t>(runs.front().size()) != kPieceAccess)
      return op.emitOpError("needs a layout in which a thread has ")
             << kPieceAccess << " neighbours of a row, got "
             << layout.accumulator;
    SmallVector<Value> shares = emitShares(b, op);
    SmallVector<Value> sums(layout.getNumElements());
    for (ArrayRef<int64_t> run : runs) {
      Value place = emitPlace(b, op, layout.getOffset(run.front()));
      Value sum;
      for (Value base : shares) {
        Value at = LLVM::GEPOp::create(b, loc, base.getType(), element, base,
                                       ArrayRef<LLVM::GEPArg>{place});
        Value share = LLVM::LoadOp::create(b, loc, access, at,
                                           /*alignment=*/kPieceAccess * 4);
        sum = sum ? vector::makeArithReduction(
                        b, loc, vector::CombiningKind::ADD, sum, share)
                  : share;
      }
      for (auto [i, e] : llvm::enumerate(run))
        sums[e] =
            vector::ExtractOp::create(b, loc, sum, static_cast<int64_t>(i));
    }
    b.replaceOpWithMultiple(op, {ValueRange(sums)});
    return success();
  }

private:
  /// The CTA's own shares, and those of the CTAs behind it, the first of which
  /// comes behind the last: so each reads those of another at a time.
  static SmallVector<Value> emitShares(OpBuilder &b, SumCtasOp op) {
    Location loc = op.getLoc();
    IndexMath math{b, loc};
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getShares());
    Value word = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
    auto getPointer = [&](NVVM::NVVMMemorySpace space) {
      return LLVM::LLVMPointerType::get(b.getContext(),
                                        static_cast<unsigned>(space));
    };
    Value own = LLVM::IntToPtrOp::create(
        b, loc, getPointer(NVVM::NVVMMemorySpace::Shared), word);
    SmallVector<Value> shares = {own};
    auto ctas = static_cast<int64_t>(op.getCtas());
    Value rank = NVVM::ClusterId::create(b, loc, b.getI32Type());
    for (int64_t behind = 1; behind < ctas; ++behind) {
      Value other = math.add(rank, math.word(behind));
      Value wrapped = math.sub(other, math.word(ctas));
      other = math.select(
          math.compare(arith::CmpIPredicate::ult, other, math.word(ctas)),
          other, wrapped);
      shares.push_back(NVVM::MapaOp::create(
          b, loc, getPointer(NVVM::NVVMMemorySpace::SharedCluster), own,
          other));
    }
    return shares;
  }

  /// How many elements the thread's element at `offset` lies behind the first
  /// of a share; a row that does not exist is the last one.
  Value emitPlace(OpBuilder &b, SumCtasOp op, TileOffset offset) const {
    IndexMath math{b, op.getLoc()};
    auto type = cast<MemRefType>(op.getShares().getType());
    auto piece = cast<VectorType>(op.getResult().getType());
    Value row = math.add(layout.token, offset.token);
    Value column = math.add(layout.output, offset.output);
    if (op.getTokensContiguous())
      std::swap(row, column);
    row = math.add(op.getRow(), row);
    int64_t rows = piece.getDimSize(op.getTokensContiguous() ? 1 : 0);
    if (type.getDimSize(0) < static_cast<int64_t>(op.getCtas()) * rows)
      row = math.min(row, math.constant(type.getDimSize(0) - 1));
    Value place = math.add(math.mul(row, type.getDimSize(1)), column);
    return math.narrow(place);
  }
};

} // namespace

void nm_sparse::populateSumCtasPatterns(const TypeConverter &converter,
                                        const ThreadLayout &layout,
                                        RewritePatternSet &patterns) {
  patterns.add<SumCtasLowering>(converter, patterns.getContext(), layout);
}
