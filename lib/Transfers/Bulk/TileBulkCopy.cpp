//===- TileBulkCopy.cpp - bulk_copy by one thread -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One instruction for each box: 128 bytes are the widest that the accelerator
// swizzles, and 256 elements the widest of all.
//
//===----------------------------------------------------------------------===//

#include "Transfers/TransferAttrs.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "nm_sparse/Transfers/Patterns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The address of the map, which the launch takes as a parameter.
Value emitMapAddress(OpBuilder &b, Value map) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(map);
  return UnrealizedConversionCastOp::create(
             b, map.getLoc(), LLVM::LLVMPointerType::get(b.getContext()), map)
      .getResult(0);
}

/// Emits the copies of the boxes of a bulk_copy, by one thread.
class BoxEmitter {
public:
  BoxEmitter(OpBuilder &b, BulkCopyOp op)
      : b(b), loc(op.getLoc()), op(op), math(b, loc),
        dst(cast<MemRefType>(op.getDst().getType())),
        box(op.getMap().getType().getTensor()),
        bytes(dst.getElementTypeBitWidth() / 8),
        parts(op.getMulticast().value_or(1)) {}

  void emit() {
    map = emitMapAddress(b, op.getMap());
    auto metadata =
        memref::ExtractStridedMetadataOp::create(b, loc, op.getDst());
    base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getDst());
    base = math.add(base, math.mul(metadata.getOffset(), bytes));
    // The slice of this CTA goes to the same place in every box.
    if (parts > 1) {
      rank = math.widen(NVVM::ClusterId::create(b, loc, b.getI32Type()));
      base = math.add(base, math.mul(rank, box.getNumElements() * bytes));
      mask = arith::ConstantIntOp::create(b, loc, b.getI16Type(),
                                          (1 << parts) - 1);
    }
    if (!op.getParts())
      return emitBoxes();
    Value first = op.getCoordinates()[box.getRank() - 2];
    Value isPart =
        math.isLess(op.getWithin(), math.add(first, dst.getDimSize(0)));
    auto ifPart = scf::IfOp::create(b, loc, isPart, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifPart.thenBlock());
    emitParts();
    b.setInsertionPointToStart(ifPart.elseBlock());
    emitBoxes();
  }

private:
  void emitBoxes() {
    SmallVector<int64_t> counts = op.getBoxCounts();
    int64_t numBoxes = llvm::product_of(counts);
    // The CTAs share rows, or tiles of core matrices, which have four
    // dimensions.
    int64_t shared = box.getRank() - (op.getBoxes() ? 4 : 2);
    for (int64_t number = 0; number < numBoxes; ++number) {
      SmallVector<Value> coordinates;
      int64_t behind = numBoxes;
      for (auto [first, extent, count] :
           llvm::zip_equal(op.getCoordinates(), box.getShape(), counts)) {
        behind /= count;
        Value at = math.add(first, number / behind % count * extent);
        if (rank && static_cast<int64_t>(coordinates.size()) == shared)
          at = math.add(at, math.mul(rank, extent));
        coordinates.push_back(at);
      }
      emitBox(map,
              math.add(base, number * parts * box.getNumElements() * bytes),
              coordinates);
    }
  }

  /// The same in boxes of fewer rows.
  void emitParts() {
    auto type = cast<nvgpu::TensorMapDescriptorType>(op.getParts().getType());
    int64_t line = box.getShape().back();
    int64_t partRows = type.getTensor().getNumElements() / line;
    Value partMap = emitMapAddress(b, op.getParts());
    SmallVector<Value> coordinates(op.getCoordinates());
    for (int64_t row = 0; row < dst.getDimSize(0); row += partRows) {
      Value first = op.getCoordinates()[box.getRank() - 2];
      if (row > 0) {
        first = math.add(first, row);
        first = math.select(math.isLess(first, op.getWithin()), first,
                            math.constant(0));
      }
      coordinates[box.getRank() - 2] = first;
      for (int64_t column = 0; column < dst.getDimSize(1); column += line) {
        coordinates.back() = math.add(op.getCoordinates().back(), column);
        int64_t place = column * dst.getDimSize(0) + row * line;
        emitBox(partMap, math.add(base, place * bytes), coordinates);
      }
    }
  }

  /// Where a box of patches begins: the pixel of the first token where the
  /// kernel has its first place, and the distance to the place of the row.
  struct PatchBox {
    SmallVector<Value> coordinates, offsets;
  };
  PatchBox findPatchBox(Value token, Value row) {
    PatchesAttr patches = *op.getPatches();
    ArrayRef<int64_t> image = *op.getImage();
    int64_t height = patches.getOutputSize(image[0], /*axis=*/0),
            width = patches.getOutputSize(image[1], /*axis=*/1);
    Value entry = math.div(token, height * width);
    Value place[] = {math.rem(math.div(token, width), height),
                     math.rem(token, width)};
    for (unsigned axis : {0, 1})
      place[axis] = math.sub(math.mul(place[axis], patches.getStrides()[axis]),
                             patches.getLow()[axis]);
    SmallVector<int64_t> extents = patches.getRowExtents(image[2]);
    // Rows behind the last one are channels behind the last one.
    Value isRow = math.isLess(row, math.constant(llvm::product_of(extents)));
    Value channel =
        math.select(isRow, math.rem(row, image[2]), math.constant(image[2]));
    Value number = math.div(row, image[2]);
    Value slow = math.div(number, extents[1]),
          fast = math.rem(number, extents[1]);
    if (patches.getRows().front() == 's')
      std::swap(slow, fast);
    slow = math.mul(slow, patches.getDilations()[0]);
    fast = math.mul(fast, patches.getDilations()[1]);
    return {{entry, place[0], place[1], channel},
            {math.select(isRow, slow, math.constant(0)),
             math.select(isRow, fast, math.constant(0))}};
  }

  void emitBox(Value from, Value address, ArrayRef<Value> coordinates) {
    SmallVector<Value> offsets;
    PatchBox patch;
    if (op.getPatches()) {
      patch = findPatchBox(coordinates[0], coordinates[1]);
      coordinates = patch.coordinates;
      for (Value offset : llvm::reverse(patch.offsets))
        offsets.push_back(
            arith::IndexCastUIOp::create(b, loc, b.getI16Type(), offset));
    }
    // The CTA's own shared memory has the same addresses in its cluster's.
    auto cluster = LLVM::LLVMPointerType::get(
        b.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    Value word = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
    SmallVector<Value> words = llvm::map_to_vector(
        coordinates, [&](Value at) { return math.narrow(at); });
    // The innermost one comes first.
    std::reverse(words.begin(), words.end());
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, LLVM::IntToPtrOp::create(b, loc, cluster, word), from, words,
        op.getMbarrier(), offsets, mask, /*l2CacheHint=*/Value(),
        offsets.empty() ? NVVM::TMALoadMode::TILE : NVVM::TMALoadMode::IM2COL,
        /*isCTAOnly=*/false,
        /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
  }

  OpBuilder &b;
  Location loc;
  BulkCopyOp op;
  IndexMath math;
  MemRefType dst, box;
  int64_t bytes, parts;
  Value map, base;
  /// The rank of the CTA among those that share the copies, and their mask;
  /// null without them.
  Value rank, mask;
};

struct BulkCopyLowering : CopyPattern<BulkCopyOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(BulkCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getMbarrier())
      return op.emitOpError("needs an mbarrier to arrive on: run "
                            "--nm-sparse-specialize-warps first");
    Location loc = op.getLoc();
    IndexMath math{rewriter, loc};
    auto ifFirst = scf::IfOp::create(rewriter, loc, isFirst(math, op),
                                     /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(ifFirst.thenBlock());
    // Warps that read the tile themselves, and said that they have done so,
    // read in another proxy than the accelerator writes in.
    if (threads.schedule.getRingUse().readByThreads)
      NVVM::FenceProxyOp::create(
          rewriter, loc,
          NVVM::ProxyKindAttr::get(getContext(), NVVM::ProxyKind::async_shared),
          NVVM::SharedSpaceAttr::get(getContext(),
                                     NVVM::SharedSpace::shared_cta));
    NVVM::MBarrierArriveExpectTxOp::create(
        rewriter, loc, Type(), op.getMbarrier(), math.word(op.getBytes()),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    BoxEmitter(rewriter, op).emit();
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// i1: this is the thread that copies, one of each group where there are
  /// several.
  Value isFirst(const IndexMath &math, BulkCopyOp op) const {
    if (!op.getThreads())
      return math.isEqual(threads.id, 0);
    ArrayRef<int64_t> range = *op.getThreads();
    if (range.size() < 3)
      return math.isEqual(threads.id, range.front());
    return math.isEqual(math.rem(math.sub(threads.id, range.front()), range[1]),
                        0);
  }
};

} // namespace

void BulkAttr::populatePatterns(const TypeConverter &converter,
                                const CopyThreads &threads,
                                RewritePatternSet &patterns) const {
  patterns.add<BulkCopyLowering>(converter, patterns.getContext(), threads);
}
