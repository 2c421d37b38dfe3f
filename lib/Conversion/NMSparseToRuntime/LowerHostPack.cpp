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

/// Number of `type` in the runtime's NmsKind (Runtime/Base.h).
static std::optional<int64_t> getRuntimeKind(Type type) {
  if (type.isF32())
    return 0;
  if (type.isF16())
    return 1;
  if (type.isBF16())
    return 2;
  if (type.isSignlessInteger(8))
    return 3;
  return std::nullopt;
}

/// Checks that the runtime can do `op` on `weight`.
static LogicalResult check(Operation *op, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (getEncoding(type) || llvm::any_of(op->getResultTypes(), getEncoding))
    return op->emitOpError("has a type with an encoding; run "
                           "--nm-sparse-materialize-encodings first");
  if (!getRuntimeKind(type.getElementType()))
    return op->emitOpError("cannot work at run time on elements of type ")
           << type.getElementType()
           << ", legal are f32, f16, bf16 and i8; make "
           << "the weight a constant";
  return success();
}

/// Calls `function` with the rank, descriptors of `weight` and of a new buffer
/// for each result of `op`, and [n, m, bk, bn, dim, kind, index bytes].
static void lower(IRRewriter &rewriter, ModuleOp module, Operation *op,
                  Value weight, EncodingAttr encoding, StringRef function) {
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(weight.getType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(rewriter, loc, value, 64);
  };
  // A weight's buffer may be a view, so nothing is assumed about its layout.
  auto layout = StridedLayoutAttr::get(
      rewriter.getContext(), ShapedType::kDynamic,
      SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic));
  Value source = bufferization::ToBufferOp::create(
      rewriter, loc,
      MemRefType::get(type.getShape(), type.getElementType(), layout), weight,
      /*read_only=*/true);
  SmallVector<Value> operands = {constant(type.getRank()),
                                 buildDescriptor(rewriter, loc, source)};
  SmallVector<Value> buffers;
  for (Type result : op->getResultTypes()) {
    auto resultType = cast<RankedTensorType>(result);
    buffers.push_back(memref::AllocOp::create(
        rewriter, loc,
        MemRefType::get(resultType.getShape(), resultType.getElementType())));
    operands.push_back(buildDescriptor(rewriter, loc, buffers.back()));
  }
  SmallVector<Value> parameters;
  for (int64_t value : {encoding.getN(), encoding.getM(), encoding.getBlockK(),
                        encoding.getBlockN(), encoding.getDim(),
                        *getRuntimeKind(type.getElementType()),
                        static_cast<int64_t>(encoding.getIndexBitWidth() / 8)})
    parameters.push_back(constant(value));
  operands.push_back(buildI64Array(rewriter, loc, parameters));
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
              prune.getEncoding(), "nmsRuntimePrune");
      else
        lower(rewriter, getOperation(), op, op->getOperand(0),
              cast<PackOp>(op).getEncoding(), "nmsRuntimePack");
    }
  }
};
} // namespace
