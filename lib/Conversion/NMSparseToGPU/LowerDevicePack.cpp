//===- LowerDevicePack.cpp - pack weights by kernels ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launch is built between to_buffer and to_tensor, as the calls of
// --nm-sparse-lower-host-pack are, so that one-shot bufferization need not know
// it. A kernel cannot fail: it leaves the first window that breaks the pattern
// in a word, which the host looks at where the block ends. It waits there for
// the device anyway, so that kernels behind this one need not wait for the
// host.
//
//===----------------------------------------------------------------------===//

#include "PackKernel.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Conversion/RuntimeCall.h"
#include "nm_sparse/Packing/Packing.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERDEVICEPACKPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isInTiles(PackOp op) {
  return op.getForm()
      .getStoredTile(getElementTypeOrSelf(op.getWeight()))
      .has_value();
}

static PackTiling getTiling(PackOp op) {
  return PackTiling(cast<RankedTensorType>(op.getWeight().getType()),
                    op.getEncoding(), isInTiles(op));
}

/// Why no kernel packs the weight of `op`; empty if one does.
static std::string findObstacle(PackOp op) {
  auto weight = cast<RankedTensorType>(op.getWeight().getType());
  EncodingAttr encoding = op.getEncoding();
  if (encoding.hasInnerLevel())
    return "has two levels";
  if (encoding.isFree())
    return "keeps any number of blocks";
  if (encoding.getOrder() != OutputOrder::Identity)
    return "is shuffled";
  if (encoding.getM() > PackTiling::kMaxPositions)
    return "has windows of " + std::to_string(encoding.getM()) + " blocks";
  if (!weight.hasStaticShape() || weight.getNumElements() == 0)
    return "is that of a weight whose shape is empty or not known";
  if (!isa<EncodingAttr>(op.getForm()) && !isInTiles(op))
    return "is stored in a form of its own";
  if (isInTiles(op) && !getTiling(op).isStaged)
    return "makes tiles of bitmaps that are larger than shared memory";
  return "";
}

/// Checks that `op` works on plain tensors.
static LogicalResult checkTypes(PackOp op) {
  if (!getEncoding(op.getWeight().getType()))
    return success();
  return op.emitOpError("has a type with an encoding; run "
                        "--nm-sparse-materialize-encodings first");
}

/// i1: all rows of `buffer` begin where a thread can read 16 bytes at once. A
/// sum of remainders: where that of the pointer is known to be 0, as for a
/// manifest, the rest are numbers.
static Value isAligned(OpBuilder &b, Location loc, Value buffer,
                       int64_t elementBytes) {
  IndexMath math{b, loc};
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
  auto getRest = [&](Value bytes) {
    return math.rem(bytes, PackTiling::kAccessBytes);
  };
  Value rest =
      getRest(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer));
  rest = math.add(rest, getRest(math.mul(metadata.getOffset(), elementBytes)));
  for (Value stride : llvm::drop_end(metadata.getStrides()))
    rest = math.add(rest, getRest(math.mul(stride, elementBytes)));
  return math.isEqual(rest, 0);
}

/// A buffer of `weight` whose rows have no gaps, but may have a pitch.
static Value getRows(OpBuilder &b, Location loc, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return bufferization::ToBufferOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType(), layout),
      weight, /*read_only=*/true);
}

/// The word that the kernel of `op` writes what it finds to: on the stack, as a
/// heap allocation is freed only where it cannot be returned, and once for a
/// call of the function, whatever loop `op` is in.
static Value allocateFound(PackOp op) {
  auto function = op->getParentOfType<func::FuncOp>();
  auto b = OpBuilder::atBlockBegin(&function.getBody().front());
  return memref::AllocaOp::create(b, op.getLoc(),
                                  MemRefType::get({1}, b.getI64Type()));
}

/// Calls the runtime at the end of the block of `op` with what the kernel left
/// in `found`.
static void checkFound(ModuleOp module, PackOp op, Value found,
                       const PackTiling &tiling) {
  OpBuilder b(op->getBlock()->getTerminator());
  Location loc = op.getLoc();
  Value first = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> arguments = {
      memref::LoadOp::create(b, loc, found, ValueRange{first})};
  for (int64_t number : {tiling.level.n, tiling.level.m,
                         std::max<int64_t>(tiling.shape.batch, 1),
                         tiling.shape.windows, tiling.shape.panels})
    arguments.push_back(arith::ConstantIntOp::create(b, loc, number, 64));
  callRuntime(b, loc, module, "nmsRuntimeCheckPacked", TypeRange(), arguments);
}

static void launchKernel(OpBuilder &b, PackOp op, const PackTiling &tiling,
                         const PackBuffers &buffers) {
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto count = [&](int64_t extent, int64_t step) {
    return constant(llvm::divideCeil(extent, step));
  };
  Value one = constant(1);
  auto launch =
      gpu::LaunchOp::create(b, loc, count(tiling.shape.panels, tiling.panels),
                            count(tiling.shape.windows, tiling.windows),
                            constant(std::max<int64_t>(tiling.shape.batch, 1)),
                            constant(tiling.threads()), one, one);
  auto function = op->getParentOfType<func::FuncOp>();
  launch.setFunctionAttr(SymbolRefAttr::get(
      b.getContext(), (function.getSymName() + "_pack").str()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launch.getBody().front());
  PackKernel(b, loc, tiling, buffers, launch.getThreadIds().x,
             launch.getBlockIds())
      .emit();
  gpu::TerminatorOp::create(b, loc);
}

static void lower(IRRewriter &rewriter, ModuleOp module, PackOp op) {
  Location loc = op.getLoc();
  auto allocate = [&](Value tensor) -> Value {
    auto type = cast<RankedTensorType>(tensor.getType());
    return memref::AllocOp::create(
        rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()));
  };
  rewriter.setInsertionPoint(op);
  PackTiling tiling = getTiling(op);
  PackBuffers buffers;
  buffers.dense = getRows(rewriter, loc, op.getWeight());
  buffers.isAligned =
      isAligned(rewriter, loc, buffers.dense, tiling.elementBytes);
  auto components = op.getComponents();
  buffers.values = allocate(components[0]);
  buffers.positions = allocate(components[1]);
  buffers.found = allocateFound(op);
  Value none =
      arith::ConstantIntOp::create(rewriter, loc, NMS_PACKED_NOTHING_FOUND, 64);
  Value first = arith::ConstantIndexOp::create(rewriter, loc, 0);
  memref::StoreOp::create(rewriter, loc, none, buffers.found,
                          ValueRange{first});
  launchKernel(rewriter, op, tiling, buffers);
  checkFound(module, op, buffers.found, tiling);

  const Value packed[] = {buffers.values, buffers.positions};
  SmallVector<Value> results;
  for (auto [type, buffer] : llvm::zip_equal(op.getResultTypes(), packed))
    results.push_back(bufferization::ToTensorOp::create(
        rewriter, loc, type, buffer, /*restrict=*/true, /*writable=*/true));
  rewriter.replaceOp(op, results);
}

namespace {
struct LowerDevicePack
    : public nm_sparse::impl::NMSparseLowerDevicePackPassBase<LowerDevicePack> {
  using NMSparseLowerDevicePackPassBase::NMSparseLowerDevicePackPassBase;

  void runOnOperation() override;
};
} // namespace

void LowerDevicePack::runOnOperation() {
  if (where != "auto" && where != "device" && where != "host") {
    emitError(UnknownLoc::get(&getContext()))
        << "where to pack must be auto, device or host, got '" << where << "'";
    return signalPassFailure();
  }
  if (where == "host")
    return;
  SmallVector<PackOp> ops;
  bool bad = false;
  getOperation().walk([&](PackOp op) {
    if (failed(checkTypes(op))) {
      bad = true;
      return;
    }
    std::string obstacle = findObstacle(op);
    if (obstacle.empty()) {
      ops.push_back(op);
    } else if (where == "device") {
      op.emitOpError("cannot be done by a kernel, as its encoding ")
          << obstacle << "; legal is one n:m level with m up to "
          << PackTiling::kMaxPositions
          << ", of a weight of static shape; others are packed on the host";
      bad = true;
    } else {
      op.emitRemark("packing is done on the host, which must be able to read "
                    "the weight: no kernel does it, as the encoding ")
          << obstacle;
    }
  });
  if (bad || (!ops.empty() && failed(checkRuntimeNames(getOperation()))))
    return signalPassFailure();
  IRRewriter rewriter(&getContext());
  for (PackOp op : ops)
    lower(rewriter, getOperation(), op);
}
