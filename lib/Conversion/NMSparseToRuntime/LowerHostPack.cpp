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

#include "nm_sparse/Conversion/Passes.h"

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
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isInTiles(PackOp pack) {
  return pack.getForm()
      .getStoredTile(getElementTypeOrSelf(pack.getWeight()))
      .has_value();
}

/// Checks that `op` works on plain tensors.
static LogicalResult check(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), getEncoding) ||
      llvm::any_of(op->getResultTypes(), getEncoding))
    return op->emitOpError("has a type with an encoding; run "
                           "--nm-sparse-materialize-encodings first");
  if (auto pack = dyn_cast<PackOp>(op);
      pack && !isa<EncodingAttr>(pack.getForm()) && !isInTiles(pack) &&
      !pack.getForm().getListedPanels())
    return op->emitOpError("has storage ")
           << pack.getForm()
           << ", which the runtime does not know; it packs into the canonical "
              "form, bitmaps and ragged panels";
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

/// As above, and what panels are filled up to where they are ragged.
static SmallVector<int64_t> getParameters(EncodingAttr encoding,
                                          WeightStorageInterface form,
                                          Type elementType) {
  SmallVector<int64_t> parameters = getParameters(encoding, elementType);
  if (std::optional<ListedPanels> listed =
          form ? form.getListedPanels() : std::nullopt)
    parameters.push_back(listed->rows);
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

/// How many values, or rows of ragged panels, `op` makes of a free weight.
static Value countValues(OpBuilder &builder, ModuleOp module, PackOp op,
                         ValueRange inputs) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  Value rank = arith::ConstantIntOp::create(builder, loc, type.getRank(), 64);
  std::string name = op.getForm().getListedPanels()
                         ? "nmsRuntimeCountRagged"
                         : "nmsRuntimeCountFreeBitmap";
  if (op.getEncoding().getOrder() == OutputOrder::Shuffled)
    name += "Shuffled";
  Value count =
      callRuntime(builder, loc, module, name, builder.getI64Type(),
                  {rank, inputs.front(),
                   buildI64Array(builder, loc,
                                 getParameters(op.getEncoding(), op.getForm(),
                                               type.getElementType()))})
          .front();
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    count);
}

/// Replaces `op` by a call of `function` that fills a new buffer for each of
/// its results. The call takes the rank, the dense weight, one other weight or
/// a list of components, and parameters.
static void lower(IRRewriter &rewriter, ModuleOp module, Operation *op,
                  EncodingAttr encoding, WeightStorageInterface form,
                  StringRef function) {
  std::string name = function.str();
  if (encoding.getOrder() == OutputOrder::Shuffled)
    name += "Shuffled";
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<Value> inputs =
      describeOperands(rewriter, loc, op->getOperands());
  SmallVector<Value> buffers, outputs;
  Value count;
  for (auto [number, result] : llvm::enumerate(op->getResultTypes())) {
    auto type = cast<RankedTensorType>(result);
    // How many values a free weight keeps, only its data says.
    SmallVector<Value> sizes;
    if (!type.hasStaticShape()) {
      if (!count)
        count = countValues(rewriter, module, cast<PackOp>(op), inputs);
      sizes.push_back(count);
    }
    // There is a row of activations for each block of rows.
    if (number == 1 && !sizes.empty())
      sizes.front() = rewriter.createOrFold<arith::DivUIOp>(
          loc, count,
          arith::ConstantIndexOp::create(rewriter, loc,
                                         form.getListedPanels()->blockRows));
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
  SmallVector<Value> operands = {
      arith::ConstantIntOp::create(rewriter, loc, type.getRank(), 64), dense,
      other,
      buildI64Array(rewriter, loc,
                    getParameters(encoding, form, type.getElementType()))};
  // The density of a free weight, and of a shuffled one, which may be both.
  if (auto prune = dyn_cast<PruneOp>(op);
      prune &&
      (encoding.isFree() || encoding.getOrder() == OutputOrder::Shuffled))
    operands.push_back(arith::ConstantFloatOp::create(
        rewriter, loc, rewriter.getF64Type(),
        prune.getDensity().value_or(APFloat(0.0))));
  callRuntime(rewriter, loc, module, name, TypeRange(), operands);

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
    if (bad || (!ops.empty() && failed(checkRuntimeNames(getOperation()))))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      llvm::TypeSwitch<Operation *>(op)
          .Case<PruneOp>([&](auto prune) {
            lower(rewriter, getOperation(), prune, prune.getEncoding(),
                  WeightStorageInterface(),
                  prune.getEncoding().isFree() &&
                          prune.getEncoding().getOrder() ==
                              OutputOrder::Identity
                      ? "nmsRuntimePruneFree"
                      : "nmsRuntimePrune");
          })
          .Case<PackOp>([&](auto pack) {
            lower(rewriter, getOperation(), pack, pack.getEncoding(),
                  pack.getForm(),
                  pack.getForm().getListedPanels() ? "nmsRuntimePackRagged"
                  : pack.getEncoding().isFree()    ? "nmsRuntimePackFreeBitmap"
                  : isInTiles(pack)                ? "nmsRuntimePackDenseBitmap"
                                                   : "nmsRuntimePack");
          })
          .Case<UnpackOp>([&](auto unpack) {
            WeightStorageInterface form =
                unpack.getEncoding().getDefaultStorage();
            lower(rewriter, getOperation(), unpack, unpack.getEncoding(), form,
                  form.getListedPanels()          ? "nmsRuntimeUnpackRagged"
                  : unpack.getEncoding().isFree() ? "nmsRuntimeUnpackFreeBitmap"
                                                  : "nmsRuntimeUnpack");
          });
  }
};
} // namespace
