//===- TileWrite.cpp - writes of CTA tiles by threads ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile that lies inside of its buffer, at an address that allows wide
// accesses, is written without tests. EdgeWriter.cpp writes the others.
//
//===----------------------------------------------------------------------===//

#include "EdgeWriter.h"
#include "FragmentStore.h"
#include "TileAccess.h"
#include "TransposedAccess.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::mustUntie(const ThreadLayout &layout, Type element,
                          const TileEpilogue &epilogue) {
  return layout.use.accumulatorsNeedCopies && element.isF32() &&
         epilogue.elementwise.empty();
}

Value nm_sparse::copyToAnyRegister(OpBuilder &b, Location loc, Value value) {
  return LLVM::InlineAsmOp::create(
             b, loc, value.getType(), value, "add.rn.f32 $0, $1, 0f80000000;",
             "=f,f",
             /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

/// Stores behind one test of bounds: more take registers for their addresses.
static constexpr size_t kStoreTogether = 16;

namespace {

struct WriteLowering : EpiloguePattern<vector::TransferWriteOp> {
  using EpiloguePattern::EpiloguePattern;

  /// Writes the elements of `runs` that exist.
  void writeElements(TileAccess &access, ArrayRef<TileRun> runs,
                     ValueRange scalars) const {
    OpBuilder &b = access.b;
    for (ArrayRef<int64_t> group : access.groupByBounds(runs, kStoreTogether)) {
      SmallVector<SmallVector<Value>> at;
      for (int64_t e : group)
        at.push_back(access.getIndices(layout.getOffset(e)));
      OpBuilder::InsertionGuard guard(b);
      if (Value exists = access.exists(at.front())) {
        auto ifOp =
            scf::IfOp::create(b, access.loc, exists, /*withElseRegion=*/false);
        b.setInsertionPointToStart(ifOp.thenBlock());
      }
      for (auto [e, indices] : llvm::zip_equal(group, at))
        memref::StoreOp::create(b, access.loc, scalars[e], access.getRoot(),
                                access.getPlace(indices, layout.getOffset(e)));
    }
  }

  /// Writes `runs`, all of whose elements exist.
  void writeRuns(TileAccess &access, ArrayRef<TileRun> runs,
                 ValueRange scalars) const {
    OpBuilder &b = access.b;
    int64_t width = runs.front().size();
    auto vectorType = VectorType::get({width}, access.type.getElementType());
    bool untie = mustUntie(layout, access.type.getElementType(), epilogue);
    for (ArrayRef<int64_t> run : runs) {
      SmallVector<Value> at = access.getPlace(run);
      if (width == 1) {
        memref::StoreOp::create(b, access.loc, scalars[run.front()],
                                access.getRoot(), at);
        continue;
      }
      SmallVector<Value> elements;
      for (int64_t e : run)
        elements.push_back(untie ? copyToAnyRegister(b, access.loc, scalars[e])
                                 : scalars[e]);
      Value packed =
          vector::FromElementsOp::create(b, access.loc, vectorType, elements);
      vector::StoreOp::create(
          b, access.loc, packed, access.getRoot(), at, /*nontemporal=*/false,
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
          vector::StoreOp::create(b, access.loc, vector, access.getRoot(),
                                  access.getPlace(at, offset),
                                  /*nontemporal=*/false, llvm::Align(16));
        });
  }

  /// The buffer of `access` with strides that LLVM does not know: a thread that
  /// writes many rows would else keep their distances through the K loop.
  static Value hideStrides(TileAccess &access) {
    OpBuilder &b = access.b;
    auto metadata = memref::ExtractStridedMetadataOp::create(b, access.loc,
                                                             access.getRoot());
    SmallVector<OpFoldResult> sizes = metadata.getConstifiedMixedSizes();
    SmallVector<OpFoldResult> strides = metadata.getConstifiedMixedStrides();
    for (OpFoldResult &stride : strides)
      if (auto value = dyn_cast<Value>(stride))
        stride = hideIndex(b, access.loc, value);
    OpFoldResult offset = metadata.getConstifiedMixedOffset();
    return memref::ReinterpretCastOp::create(
        b, access.loc, metadata.getBaseBuffer(), offset, sizes, strides);
  }

  /// Writes `runs`, all of whose elements exist, in `form`; in the transposed
  /// one they are all of the tile.
  void writeGroup(TileAccess &access, StoreForm form, ArrayRef<TileRun> runs,
                  ValueRange scalars) const {
    switch (form) {
    case StoreForm::Runs:
      return writeRuns(access, runs, scalars);
    case StoreForm::Fragments:
      return writeFragments(access, runs, scalars);
    case StoreForm::Transposed:
      return TransposedAccess(access).store(scalars);
    }
  }

  LogicalResult
  matchAndRewrite(vector::TransferWriteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getBase().getType()) || op.getMask())
      return rewriter.notifyMatchFailure(op,
                                         "not an unmasked write to a buffer");
    ValueRange scalars = adaptor.getValueToStore();
    OpBuilder::InsertionGuard ownerGuard(rewriter);
    if (layout.isOwner) {
      auto ifOp = scf::IfOp::create(rewriter, op.getLoc(), layout.isOwner,
                                    /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
    }
    TileAccess access(rewriter, layout, op);
    auto runs = access.getRuns();
    ++epilogue.numWrites;
    bool unties = mustUntie(layout, access.type.getElementType(), epilogue);
    StoreForm form = getStoreForm(access);
    // Where warps transpose, a lane writes columns of others.
    if (form != StoreForm::Transposed)
      access.usePlaces(epilogue.places);
    TileVersion version = epilogue.versions.lookup(op);
    Value allowsWide = version == TileVersion::Unknown
                           ? access.allowsWide(getStoreWidth(access))
                           : Value();
    // Elements that are combined with others are written a few at a time, for
    // want of registers. The rest in one piece: the tests of each element that
    // the narrow path needs would be shared by the pieces, and be made by all.
    for (ArrayRef<TileRun> group :
         groupRuns(runs, /*small=*/version == TileVersion::Unknown &&
                             form != StoreForm::Transposed &&
                             !epilogue.reads.empty())) {
      // Each where it has been computed: see EpilogueOrder.cpp.
      if (version == TileVersion::Edge || version == TileVersion::Runs) {
        EdgeWriter(access, form, unties, version == TileVersion::Runs)
            .writeWide(group, scalars);
        continue;
      }
      if (version == TileVersion::Elements) {
        writeElements(access, group, scalars);
        continue;
      }
      if (!allowsWide) {
        writeGroup(access, form, group, scalars);
        continue;
      }
      auto ifOp = scf::IfOp::create(rewriter, op.getLoc(), allowsWide,
                                    /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
      writeGroup(access, form, group, scalars);
      rewriter.setInsertionPointToStart(ifOp.elseBlock());
      if (form == StoreForm::Transposed)
        access.setRoot(hideStrides(access));
      EdgeWriter(access, form, unties).write(group, scalars);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void nm_sparse::populateTileWritePatterns(const TypeConverter &converter,
                                          const ThreadLayout &layout,
                                          TileEpilogue &epilogue,
                                          RewritePatternSet &patterns) {
  patterns.add<WriteLowering>(converter, patterns.getContext(), layout,
                              epilogue);
}
