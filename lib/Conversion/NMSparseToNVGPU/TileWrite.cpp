//===- TileWrite.cpp - writes of CTA tiles by threads ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer to global memory tests bounds element by element, unless the whole
// tile lies inside and its address allows wide accesses.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"
#include "Patterns.h"
#include "TileAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct WriteLowering : public OpConversionPattern<vector::TransferWriteOp> {
  WriteLowering(const TypeConverter &converter, MLIRContext *context,
                const ThreadLayout &layout, TileEpilogue &epilogue)
      : OpConversionPattern(converter, context), layout(layout),
        epilogue(epilogue) {}

  void writeElement(TileAccess &access, int64_t e, Value scalar) const {
    OpBuilder &b = access.b;
    SmallVector<Value> at = access.getIndices(layout.getOffset(e));
    OpBuilder::InsertionGuard guard(b);
    if (Value exists = access.exists(at)) {
      auto ifOp =
          scf::IfOp::create(b, access.loc, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    memref::StoreOp::create(b, access.loc, scalar, access.buffer, at);
  }

  void writeElements(TileAccess &access, ArrayRef<TileRun> runs,
                     ValueRange scalars) const {
    for (ArrayRef<int64_t> run : runs)
      for (int64_t e : run)
        writeElement(access, e, scalars[e]);
  }

  /// A copy of `value` that ptxas cannot do without. Four registers that are
  /// stored together are neighbours, as are the four outputs of the weight that
  /// one read fetched, so each accumulator of a simt thread would share the
  /// register bank of its weight, and the FFMA that reads both takes two
  /// cycles. A sum with -0.0 has the bits of `value`.
  static Value copyToAnyRegister(OpBuilder &b, Location loc, Value value) {
    return LLVM::InlineAsmOp::create(
               b, loc, value.getType(), value, "add.rn.f32 $0, $1, 0f80000000;",
               "=f,f",
               /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
        .getResult(0);
  }

  /// Writes `runs`, all of whose elements exist.
  void writeRuns(TileAccess &access, ArrayRef<TileRun> runs,
                 ValueRange scalars) const {
    OpBuilder &b = access.b;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    // What was computed from accumulators is in registers of its own.
    bool untie = layout.kind == ScheduleKind::Simt &&
                 access.type.getElementType().isF32() &&
                 epilogue.elementwise.empty();
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getIndices(layout.getOffset(run.front()));
      if (width == 1) {
        memref::StoreOp::create(b, access.loc, scalars[run.front()],
                                access.buffer, at);
        continue;
      }
      SmallVector<Value> elements;
      for (int64_t e : run)
        elements.push_back(untie ? copyToAnyRegister(b, access.loc, scalars[e])
                                 : scalars[e]);
      Value packed =
          vector::FromElementsOp::create(b, access.loc, vectorType, elements);
      vector::StoreOp::create(
          b, access.loc, packed, access.buffer, at, /*nontemporal=*/false,
          llvm::Align(width * access.type.getElementTypeBitWidth() / 8));
    }
  }

  /// As writeRuns, for pairs of neighbours that make up whole fragment rows.
  /// Each lane's position along the contiguous dimension moves by `shift`.
  void writeFragments(TileAccess &access, ArrayRef<TileRun> runs,
                      ValueRange scalars) const {
    OpBuilder &b = access.b;
    unsigned dim = access.dims[layout.outputsAreRows ? 0 : 1];
    storeFragments(
        b, access.loc, layout, scalars, runs.front().front(), runs.size() * 2,
        [&](Value vector, TileOffset offset, Value shift) {
          SmallVector<Value> at = access.getIndices(offset);
          at[dim] = arith::AddIOp::create(b, access.loc, at[dim], shift);
          vector::StoreOp::create(b, access.loc, vector, access.buffer, at,
                                  /*nontemporal=*/false, llvm::Align(16));
        });
  }

  LogicalResult
  matchAndRewrite(vector::TransferWriteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked write to a buffer");
    Location loc = op.getLoc();
    ValueRange scalars = adaptor.getValueToStore();
    TileAccess access(rewriter, layout, op);
    auto runs = access.getRuns();
    ++epilogue.numWrites;
    int64_t width = runs.front().size();
    bool fragments =
        width > 1 && canStoreFragments(layout, access.type.getElementType(),
                                       access.isContiguous(0));
    TileVersion version = getTileVersion(op);
    Value allowsWide = version == TileVersion::Unknown
                           ? access.allowsWide(fragments ? 8 : width)
                           : Value();
    // Elements that are combined with others are written a few at a time, for
    // want of registers. The rest in one piece: the tests of each element that
    // the narrow path needs would be shared by the pieces, and be made by all.
    for (ArrayRef<TileRun> group :
         groupRuns(runs, /*small=*/version == TileVersion::Unknown &&
                             !epilogue.reads.empty())) {
      if (!allowsWide) {
        if (version == TileVersion::Edge)
          writeElements(access, group, scalars);
        else if (fragments)
          writeFragments(access, group, scalars);
        else
          writeRuns(access, group, scalars);
        continue;
      }
      auto ifOp =
          scf::IfOp::create(rewriter, loc, allowsWide, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
      if (fragments)
        writeFragments(access, group, scalars);
      else
        writeRuns(access, group, scalars);
      rewriter.setInsertionPointToStart(ifOp.elseBlock());
      writeElements(access, group, scalars);
    }
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
  TileEpilogue &epilogue;
};

} // namespace

void nm_sparse::populateTileWritePatterns(const TypeConverter &converter,
                                          const ThreadLayout &layout,
                                          TileEpilogue &epilogue,
                                          RewritePatternSet &patterns) {
  patterns.add<WriteLowering>(converter, patterns.getContext(), layout,
                              epilogue);
}
