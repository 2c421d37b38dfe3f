//===- BufferizableOpInterfaceImpl.cpp - bufferization of the tile ops ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

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
    replaceOpWithBufferizedValues(rewriter, op, operands->back());
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

} // namespace

void nm_sparse::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    AsyncCopyOp::attachInterface<CopyModel<AsyncCopyOp>>(*context);
    AsyncGatherOp::attachInterface<CopyModel<AsyncGatherOp>>(*context);
    TileMatmulOp::attachInterface<TileMatmulModel>(*context);
  });
}
