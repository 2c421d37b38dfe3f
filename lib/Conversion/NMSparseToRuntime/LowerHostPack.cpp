//===- LowerHostPack.cpp - prune and pack at run time ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that are not constants are pruned and packed by the runtime library.
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

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERHOSTPACKPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Checks that `op` works on plain tensors.
static LogicalResult check(Operation *op, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (getEncoding(type) || llvm::any_of(op->getResultTypes(), getEncoding))
    return op->emitOpError("has a type with an encoding; run "
                           "--nm-sparse-materialize-encodings first");
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

/// Calls `function` with the rank, the descriptor of `weight`, what it fills,
/// and the parameters. It fills a new buffer for each result of `op`: one by
/// its descriptor, or any number by a `list` of descriptors.
static void lower(IRRewriter &rewriter, ModuleOp module, Operation *op,
                  Value weight, EncodingAttr encoding, StringRef function,
                  bool list) {
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(weight.getType());
  // A weight's buffer may be a view, so nothing is assumed about its layout.
  auto layout = StridedLayoutAttr::get(
      rewriter.getContext(), ShapedType::kDynamic,
      SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic));
  Value source = bufferization::ToBufferOp::create(
      rewriter, loc,
      MemRefType::get(type.getShape(), type.getElementType(), layout), weight,
      /*read_only=*/true);
  SmallVector<Value> operands = {
      arith::ConstantIntOp::create(rewriter, loc, type.getRank(), 64),
      buildDescriptor(rewriter, loc, source)};
  SmallVector<Value> buffers, descriptors;
  for (Type result : op->getResultTypes()) {
    auto resultType = cast<RankedTensorType>(result);
    buffers.push_back(memref::AllocOp::create(
        rewriter, loc,
        MemRefType::get(resultType.getShape(), resultType.getElementType())));
    descriptors.push_back(buildDescriptor(rewriter, loc, buffers.back()));
  }
  operands.push_back(list ? buildPointerArray(rewriter, loc, descriptors)
                          : descriptors.front());
  operands.push_back(buildI64Array(
      rewriter, loc, getParameters(encoding, type.getElementType())));
  callRuntime(rewriter, loc, module, function, TypeRange(), operands);

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
      if (!isa<PruneOp, PackOp>(op))
        return;
      bad |= failed(check(op, op->getOperand(0)));
      ops.push_back(op);
    });
    if (bad)
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      if (auto prune = dyn_cast<PruneOp>(op))
        lower(rewriter, getOperation(), op, prune.getWeight(),
              prune.getEncoding(), "nmsRuntimePrune", /*list=*/false);
      else
        lower(rewriter, getOperation(), op, op->getOperand(0),
              cast<PackOp>(op).getEncoding(), "nmsRuntimePack", /*list=*/true);
    }
  }
};
} // namespace
