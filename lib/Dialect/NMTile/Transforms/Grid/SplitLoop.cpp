//===- SplitLoop.cpp - a K loop for each of several CTAs ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid/SplitLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

using namespace mlir;
using namespace mlir::nm_sparse;

FailureOr<KLoopOp> nm_sparse::findSplitLoop(gpu::LaunchOp launch,
                                            TileMatmulOp product) {
  auto loop = dyn_cast<KLoopOp>(product->getParentOp());
  if (loop && loop->getParentOp() == launch.getOperation() &&
      loop.getInitArgs().size() == 1)
    return loop;
  return product.emitOpError("under split_k must be the product of a K loop at "
                             "the top of its launch");
}

namespace {
class LoopSplitter : private IndexEmitter {
public:
  LoopSplitter(gpu::LaunchOp launch, KLoopOp loop, int64_t parts)
      : IndexEmitter(launch, loop.getLoc()), launch(launch), loop(loop),
        parts(parts) {}

  SplitLoop run() {
    b.setInsertionPoint(launch);
    launch.getGridSizeZMutable().assign(
        mul(launch.getGridSizeZ(), constant(parts)));
    numberParts();
    shareSteps();
    result.init = loop.getInitArgs()[0];
    auto type = cast<VectorType>(result.init.getType());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    loop.getInitsMutable()[0].set(zero);
    return result;
  }

private:
  /// Block z counts (batch, part), part fastest.
  void numberParts() {
    b.setInsertionPointToStart(&launch.getBody().front());
    Value z = launch.getBlockIds().z;
    Value count = constant(parts);
    auto part = arith::RemUIOp::create(b, loc, z, count);
    auto batch = arith::DivUIOp::create(b, loc, z, count);
    z.replaceUsesWithIf(batch, [&](OpOperand &use) {
      return use.getOwner() != part && use.getOwner() != batch;
    });
    result.part = part;
    result.batch = batch;
  }

  void shareSteps() {
    b.setInsertionPoint(loop);
    Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
    Value step = loop.getStep();
    Value steps = ceilDiv(sub(upper, lower), step);
    Value length = mul(ceilDiv(steps, constant(parts)), step);
    Value begin = add(lower, mul(result.part, length));
    loop.setLowerBound(min(begin, upper));
    loop.setUpperBound(min(add(begin, length), upper));
  }

  gpu::LaunchOp launch;
  KLoopOp loop;
  int64_t parts;
  SplitLoop result;
};
} // namespace

SplitLoop nm_sparse::splitLoop(gpu::LaunchOp launch, KLoopOp loop,
                               int64_t parts) {
  return LoopSplitter(launch, loop, parts).run();
}

SmallVector<Operation *> nm_sparse::getRest(KLoopOp loop) {
  SmallVector<Operation *> rest;
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (!isa<gpu::TerminatorOp>(op))
      rest.push_back(op);
  return rest;
}
