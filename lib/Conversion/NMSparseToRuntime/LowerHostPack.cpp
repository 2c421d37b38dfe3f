//===- LowerHostPack.cpp - prune, pack and unpack at run time -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that are not constants are pruned and packed by the runtime library,
// which also makes packed ones dense where something else than a product wants
// them.
// The calls are built between to_buffer and to_tensor, so that one-shot
// bufferization need not know them.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Conversion/RuntimeCall.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERHOSTPACKPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Checks that `op` works on plain tensors.
static LogicalResult check(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), getEncoding) ||
      llvm::any_of(op->getResultTypes(), getEncoding))
    return op->emitOpError("has a type with an encoding; run "
                           "--nm-sparse-materialize-encodings first");
  if (auto pack = dyn_cast<PackOp>(op);
      pack && !isa<EncodingAttr, BitmapAttr>(pack.getForm()))
    return op->emitOpError("has storage ")
           << pack.getForm()
           << ", which the runtime does not know; it packs into the canonical "
              "form and into bitmaps";
  return success();
}

/// [dim, kind, number of levels] and [n, m, bk, bn] of each.
static SmallVector<int64_t> getParameters(EncodingAttr encoding,
                                          Type elementType) {
  SmallVector<int64_t> parameters = {
      encoding.getDim(), *getRuntimeKind(elementType),
      static_cast<int64_t>(encoding.getLevels().size())};
  for (const SparsityLevel &level : encoding.getLevels())
    parameters.append({level.n, level.m, level.blockK, level.blockN});
  return parameters;
}

/// Descriptors of the buffers behind `values`, for reading.
static SmallVector<Value> describeOperands(OpBuilder &builder, Location loc,
                                           ValueRange values) {
  SmallVector<Value> descriptors;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    // A weight's buffer may be a view, so nothing is assumed about its layout.
    auto layout = StridedLayoutAttr::get(
        builder.getContext(), ShapedType::kDynamic,
        SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic));
    Value source = bufferization::ToBufferOp::create(
        builder, loc,
        MemRefType::get(type.getShape(), type.getElementType(), layout), value,
        /*read_only=*/true);
    descriptors.push_back(buildDescriptor(builder, loc, source));
  }
  return descriptors;
}

/// The size of the values that `op` makes of a weight of free elements.
static Value countValues(OpBuilder &builder, ModuleOp module, PackOp op,
                         ValueRange inputs) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  Value rank = arith::ConstantIntOp::create(builder, loc, type.getRank(), 64);
  Value count =
      callRuntime(builder, loc, module, "nmsRuntimeCountFreeBitmap",
                  builder.getI64Type(),
                  {rank, inputs.front(),
                   buildI64Array(
                       builder, loc,
                       getParameters(op.getEncoding(), type.getElementType()))})
          .front();
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    count);
}

/// Replaces `op` by a call of `function` that fills a new buffer for each of
/// its results. The call takes the rank, the dense weight, one other weight or
/// a list of components, and parameters.
static void lower(IRRewriter &rewriter, ModuleOp module, Operation *op,
                  EncodingAttr encoding, StringRef function) {
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<Value> inputs =
      describeOperands(rewriter, loc, op->getOperands());
  SmallVector<Value> buffers, outputs;
  for (Type result : op->getResultTypes()) {
    auto type = cast<RankedTensorType>(result);
    // How many values a free weight keeps, only its data says.
    SmallVector<Value> sizes;
    if (!type.hasStaticShape())
      sizes.push_back(countValues(rewriter, module, cast<PackOp>(op), inputs));
    buffers.push_back(memref::AllocOp::create(
        rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
        sizes));
    outputs.push_back(buildDescriptor(rewriter, loc, buffers.back()));
  }
  bool unpacks = isa<UnpackOp>(op);
  Value dense = unpacks ? outputs.front() : inputs.front();
  ArrayRef<Value> others = unpacks ? inputs : outputs;
  auto type = cast<RankedTensorType>(
      (unpacks ? op->getResult(0) : op->getOperand(0)).getType());
  Value other = isa<PruneOp>(op) ? others.front()
                                 : buildPointerArray(rewriter, loc, others);
  callRuntime(rewriter, loc, module, function, TypeRange(),
              {arith::ConstantIntOp::create(rewriter, loc, type.getRank(), 64),
               dense, other,
               buildI64Array(rewriter, loc,
                             getParameters(encoding, type.getElementType()))});

  SmallVector<Value> results;
  for (auto [buffer, result] : llvm::zip(buffers, op->getResultTypes()))
    results.push_back(bufferization::ToTensorOp::create(
        rewriter, loc, result, buffer, /*restrict=*/true, /*writable=*/true));
  rewriter.replaceOp(op, results);
}

namespace {
struct LowerHostPack
    : public nm_sparse::impl::NMSparseLowerHostPackPassBase<LowerHostPack> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    bool bad = false;
    getOperation().walk([&](Operation *op) {
      if (!isa<PruneOp, PackOp, UnpackOp>(op))
        return;
      bad |= failed(check(op));
      ops.push_back(op);
    });
    if (bad)
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      llvm::TypeSwitch<Operation *>(op)
          .Case<PruneOp>([&](auto prune) {
            lower(rewriter, getOperation(), prune, prune.getEncoding(),
                  "nmsRuntimePrune");
          })
          .Case<PackOp>([&](auto pack) {
            lower(rewriter, getOperation(), pack, pack.getEncoding(),
                  pack.getEncoding().isFree() ? "nmsRuntimePackFreeBitmap"
                  : isa<BitmapAttr>(pack.getForm())
                      ? "nmsRuntimePackDenseBitmap"
                      : "nmsRuntimePack");
          })
          .Case<UnpackOp>([&](auto unpack) {
            lower(rewriter, getOperation(), unpack, unpack.getEncoding(),
                  unpack.getEncoding().isFree() ? "nmsRuntimeUnpackFreeBitmap"
                                                : "nmsRuntimeUnpack");
          });
  }
};
} // namespace
