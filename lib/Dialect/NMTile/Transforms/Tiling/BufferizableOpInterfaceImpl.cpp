//===- BufferizableOpInterfaceImpl.cpp - bufferization of the tile ops ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"
#include "nm_sparse/GPU/Support/RowPitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::bufferization;

/// Buffers of the tensor operands of `op`; other operands as they are.
static FailureOr<SmallVector<Value>>
getBufferOperands(RewriterBase &rewriter, Operation *op,
                  const BufferizationOptions &options,
                  BufferizationState &state) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isa<TensorType>(operand.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operand = *buffer;
    }
    operands.push_back(operand);
  }
  return operands;
}

/// A buffer of the shape of `buffer`, whose rows are aligned.
static Value createAligned(OpBuilder &b, Value buffer) {
  Location loc = buffer.getLoc();
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, loc, buffer);
  SmallVector<OpFoldResult> whole = sizes;
  int64_t unit = getRowPitchUnit(type);
  whole.back() = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineSymbolExpr(0).ceilDiv(unit) * unit, {sizes.back()});
  Value alloc = memref::AllocOp::create(b, loc, whole, type.getElementType());
  SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return memref::SubViewOp::create(b, loc, alloc, zeros, sizes, ones);
}

namespace {

/// async_copy and async_gather: the whole destination is overwritten.
template <typename OpTy>
struct CopyModel
    : public DstBufferizableOpInterfaceExternalModel<CopyModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    FailureOr<SmallVector<Value>> operands =
        getBufferOperands(rewriter, op, options, state);
    if (failed(operands))
      return failure();
    OpTy::create(rewriter, op->getLoc(), TypeRange(), *operands,
                 op->getAttrs());
    OpOperand &dst = *cast<OpTy>(op).getDpsInitsMutable().begin();
    replaceOpWithBufferizedValues(rewriter, op,
                                  (*operands)[dst.getOperandNumber()]);
    return success();
  }
};

/// align_rows: its result is what it reads, or a copy that nobody else sees.
struct AlignRowsModel
    : public BufferizableOpInterface::ExternalModel<AlignRowsModel,
                                                    AlignRowsOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Unknown, /*isDefinite=*/false}};
  }
  bool isWritable(Operation *, Value, const AnalysisState &) const {
    return false;
  }
  FailureOr<BufferLikeType> getBufferType(Operation *, Value value,
                                          const BufferizationOptions &,
                                          const BufferizationState &,
                                          SmallVector<Value> &) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
    strides.back() = 1;
    auto layout = StridedLayoutAttr::get(value.getContext(),
                                         ShapedType::kDynamic, strides);
    return cast<BufferLikeType>(
        MemRefType::get(type.getShape(), type.getElementType(), layout));
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    FailureOr<Value> src =
        getBuffer(rewriter, op->getOperand(0), options, state);
    FailureOr<BufferLikeType> type =
        bufferization::getBufferType(op->getResult(0), options, state);
    if (failed(src) || failed(type))
      return failure();
    replaceOpWithNewBufferizedOp<AlignRowsOp>(
        rewriter, op, Type(*type), *src, createAligned(rewriter, *src),
        cast<AlignRowsOp>(op).getAlignmentAttr(),
        cast<AlignRowsOp>(op).getFromAttr(),
        cast<AlignRowsOp>(op).getAlwaysAttr());
    return success();
  }
};

/// permuted_view: the memory of its source. The inverse of a view that a kernel
/// has written is what is behind it.
struct PermutedViewModel
    : public BufferizableOpInterface::ExternalModel<PermutedViewModel,
                                                    PermutedViewOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return operand.get() == cast<PermutedViewOp>(op).getPerm();
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (&operand != &cast<PermutedViewOp>(op).getSourceMutable())
      return {};
    return {{op->getResult(0), BufferRelation::Unknown}};
  }
  FailureOr<BufferLikeType>
  getBufferType(Operation *op, Value, const BufferizationOptions &options,
                const BufferizationState &state,
                SmallVector<Value> &invocationStack) const {
    return bufferization::getBufferType(cast<PermutedViewOp>(op).getSource(),
                                        options, state, invocationStack);
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto view = cast<PermutedViewOp>(op);
    FailureOr<SmallVector<Value>> operands =
        getBufferOperands(rewriter, op, options, state);
    if (failed(operands))
      return failure();
    if (!view.getInverse()) {
      replaceOpWithNewBufferizedOp<PermutedViewOp>(
          rewriter, op, operands->front().getType(), *operands, op->getAttrs());
      return success();
    }
    auto written = operands->front().getDefiningOp<PermutedViewOp>();
    if (!written || written.getInverse())
      return view.emitOpError(
                 "inverse must be of what a kernel has written to a "
                 "nm_tile.permuted_view, got ")
             << view.getSource();
    replaceOpWithBufferizedValues(rewriter, op, written.getSource());
    return success();
  }
};

/// interleaved_view: the memory of its source, as permuted_view.
struct InterleavedViewModel
    : public BufferizableOpInterface::ExternalModel<InterleavedViewModel,
                                                    InterleavedViewOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Unknown}};
  }
  FailureOr<BufferLikeType>
  getBufferType(Operation *op, Value, const BufferizationOptions &options,
                const BufferizationState &state,
                SmallVector<Value> &invocationStack) const {
    auto view = cast<InterleavedViewOp>(op);
    if (view.getInverse()) {
      if (auto written = view.getSource().getDefiningOp<InterleavedViewOp>())
        return bufferization::getBufferType(written.getSource(), options, state,
                                            invocationStack);
    }
    auto type = cast<RankedTensorType>(view.getType());
    return cast<BufferLikeType>(
        MemRefType::get(type.getShape(), type.getElementType()));
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto view = cast<InterleavedViewOp>(op);
    FailureOr<Value> source =
        getBuffer(rewriter, view.getSource(), options, state);
    if (failed(source))
      return failure();
    if (!view.getInverse()) {
      auto type = cast<RankedTensorType>(view.getType());
      replaceOpWithNewBufferizedOp<InterleavedViewOp>(
          rewriter, op, MemRefType::get(type.getShape(), type.getElementType()),
          *source, /*inverse=*/UnitAttr());
      return success();
    }
    auto written = source->getDefiningOp<InterleavedViewOp>();
    if (!written)
      return view.emitOpError(
                 "inverse must be of what a kernel has written to a "
                 "nm_tile.interleaved_view, got ")
             << view.getSource();
    replaceOpWithBufferizedValues(rewriter, op, written.getSource());
    return success();
  }
};

/// tile_matmul: reads its tiles; the accumulator is a vector already.
struct TileMatmulModel
    : public BufferizableOpInterface::ExternalModel<TileMatmulModel,
                                                    TileMatmulOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    FailureOr<SmallVector<Value>> operands =
        getBufferOperands(rewriter, op, options, state);
    if (failed(operands))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(*operands); });
    return success();
  }
};

/// k_loop: its body runs again and again, so that what it writes is not read as
/// it was before the loop. A sum is a vector when it is bufferized; loops that
/// carry tensors are made scf.for first, see bufferizeModule.
struct KLoopModel
    : public BufferizableOpInterface::ExternalModel<KLoopModel, KLoopOp> {
  bool isRepetitiveRegion(Operation *, unsigned) const { return true; }
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return true;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    unsigned carried = cast<KLoopOp>(op).getInitArgs().getBeginOperandIndex();
    return {{op->getResult(operand.getOperandNumber() - carried),
             BufferRelation::Unknown}};
  }
  LogicalResult verifyAnalysis(Operation *op, const AnalysisState &) const {
    for (Value init : cast<KLoopOp>(op).getInitArgs())
      if (isa<TensorType>(init.getType()))
        return op->emitOpError("carries a tensor, ")
               << init.getType()
               << ": run --nm-sparse-promote first, or bufferize with "
                  "--nm-sparse-bufferize";
    return success();
  }
  LogicalResult bufferize(Operation *op, RewriterBase &,
                          const BufferizationOptions &,
                          BufferizationState &) const {
    return op->emitOpError("that carries tensors has no form on buffers");
  }
};

} // namespace

void nm_sparse::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    AlignRowsOp::attachInterface<AlignRowsModel>(*context);
    AsyncCopyOp::attachInterface<CopyModel<AsyncCopyOp>>(*context);
    AsyncGatherOp::attachInterface<CopyModel<AsyncGatherOp>>(*context);
    KLoopOp::attachInterface<KLoopModel>(*context);
    PermutedViewOp::attachInterface<PermutedViewModel>(*context);
    InterleavedViewOp::attachInterface<InterleavedViewModel>(*context);
    TileMatmulOp::attachInterface<TileMatmulModel>(*context);
  });
}
