//===- SplitInCluster.cpp - a cluster shares the K loop of one tile -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under `split_k = S, in_cluster = true`, the S CTAs of a tile are a cluster,
// each of which computes its part of the K steps:
//
//   k_loop over the part
//   barrier; free the tiles; write the sum to shares    (own shared memory)
//   barrier of the cluster
//   piece = sum of the shares of all CTAs, of some rows of the tile
//   epilogue of the piece
//   barrier of the cluster                  (others may still read the shares)
//
// So the exchange goes from SM to SM, all CTAs take part in it and in the
// epilogue, and the result does not depend on timing.
//
//===----------------------------------------------------------------------===//

#include "Grid/SplitLoop.h"
#include "Grid/TileSlice.h"
#include "Tiling/SumElements.h"
#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPLITINCLUSTERPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Splits the K loop of one launch.
class ClusterSplitter : private IndexEmitter {
public:
  ClusterSplitter(gpu::LaunchOp launch, TileMatmulOp product, KLoopOp loop)
      : IndexEmitter(launch, product.getLoc()), launch(launch),
        product(product), loop(loop),
        tile(cast<VectorType>(loop.getResult(0).getType())),
        tokensContiguous(product.getTokensContiguous()),
        pieces(product.getSchedule(), tokensContiguous) {}

  LogicalResult run();

private:
  LogicalResult check(Operation *op);
  LogicalResult check(Value value);
  void formClusters();
  void freeTiles();
  Value leaveShare();
  Value sumPiece(Value shares);

  gpu::LaunchOp launch;
  TileMatmulOp product;
  KLoopOp loop;
  VectorType tile;
  bool tokensContiguous;
  ClusterPieces pieces;
  llvm::DenseSet<Operation *> checked;
  SplitLoop split;
  /// The first row of the piece of this CTA.
  Value first;
};

} // namespace

/// The CTAs of a tile are neighbours along z.
void ClusterSplitter::formClusters() {
  b.setInsertionPoint(launch);
  Value one = constant(1);
  launch.getClusterSizeXMutable().assign(one);
  launch.getClusterSizeYMutable().assign(one);
  launch.getClusterSizeZMutable().assign(constant(pieces.ctas));
  Block &body = launch.getBody().front();
  while (body.getNumArguments() < launch.getNumConfigRegionAttributes())
    body.addArgument(b.getIndexType(), loc);
}

/// All warps have read the tiles, whose memory the shares take.
void ClusterSplitter::freeTiles() {
  gpu::BarrierOp::create(b, loc);
  llvm::SetVector<Value> buffers;
  loop.walk([&](Operation *op) {
    if (isTileCopy(op))
      buffers.insert(
          getBufferOf(cast<DestinationStyleOpInterface>(op).getDpsInits()[0]));
  });
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, loc, buffer);
}

/// Writes the sum of this CTA to its shared memory.
Value ClusterSplitter::leaveShare() {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Value shares = memref::AllocOp::create(
      b, loc,
      MemRefType::get({pieces.tileRows, pieces.pitch}, tile.getElementType(),
                      MemRefLayoutAttrInterface(), space));
  AffineMap map = b.getMultiDimIdentityMap(2);
  if (tokensContiguous)
    map =
        AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, b.getContext());
  SmallVector<bool> inBounds(2, true);
  vector::TransferWriteOp::create(b, loc, loop.getResult(0), shares,
                                  ValueRange{constant(0), constant(0)}, map,
                                  ArrayRef<bool>(inBounds));
  return shares;
}

/// The sum of the piece of this CTA, once all shares are there.
Value ClusterSplitter::sumPiece(Value shares) {
  NVVM::ClusterArriveOp::create(b, loc, UnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, UnitAttr());
  unsigned dim = tokensContiguous ? 1 : 0;
  SmallVector<int64_t> shape(tile.getShape());
  shape[dim] = pieces.rows;
  first = mul(split.part, constant(pieces.rows));
  Value sum = SumCtasOp::create(
      b, loc, VectorType::get(shape, tile.getElementType()), shares, first,
      pieces.ctas, product.getSchedule(), tokensContiguous, AccumulatorAttr());
  NVVM::ClusterArriveOp::create(b, loc, UnitAttr());
  return sum;
}

/// Checks `op`, and all that makes the tiles that it takes.
LogicalResult ClusterSplitter::check(Operation *op) {
  if (op == loop || !checked.insert(op).second)
    return success();
  if (failed(TileSlice::check(op, tile)))
    return failure();
  return success(llvm::all_of(op->getOperands(), [&](Value operand) {
    return succeeded(check(operand));
  }));
}

LogicalResult ClusterSplitter::check(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector || vector.getShape() != tile.getShape())
    return success();
  if (Operation *op = value.getDefiningOp())
    return check(op);
  return loop.emitOpError("takes a tile, ")
         << tile << ", from a block argument: no CTA of a cluster could make "
         << "its piece of it";
}

LogicalResult ClusterSplitter::run() {
  SmallVector<Operation *> rest = getRest(loop);
  for (Operation *op : rest)
    if (failed(check(op)))
      return failure();
  Value init = loop.getInitArgs()[0];
  bool startsAtZero =
      matchPattern(init, m_AnyZeroFloat()) || matchPattern(init, m_Zero());
  if (!startsAtZero && failed(check(init)))
    return failure();

  split = splitLoop(launch, loop, pieces.ctas);
  formClusters();
  b.setInsertionPointAfter(loop);
  freeTiles();
  Value sum = sumPiece(leaveShare());
  unsigned dim = tokensContiguous ? 1 : 0;
  TileSlice slice(b, tile, dim, pieces.rows, first,
                  pieces.rows * pieces.ctas != pieces.tileRows);
  if (!startsAtZero)
    sum = addTo(b, loc, slice.slice(init), sum);
  slice.map(loop.getResult(0), sum);
  for (Operation *op : rest)
    if (TileSlice::isOfTile(op, tile)) {
      b.setInsertionPoint(op);
      slice.rewrite(op);
    }
  for (Operation *op : llvm::reverse(rest))
    if (TileSlice::isOfTile(op, tile))
      op->erase();
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  NVVM::ClusterWaitOp::create(b, loc, UnitAttr());
  return success();
}

namespace {

struct SplitInCluster
    : public nm_sparse::impl::NMSparseSplitInClusterPassBase<SplitInCluster> {
  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, TileMatmulOp>> products;
    getOperation().walk([&](TileMatmulOp op) {
      auto launch = op->getParentOfType<gpu::LaunchOp>();
      if (launch && op.getSchedule().splitsInCluster())
        products.emplace_back(launch, op);
    });
    for (auto [launch, product] : products) {
      FailureOr<KLoopOp> loop = findSplitLoop(launch, product);
      if (failed(loop) || failed(ClusterSplitter(launch, product, *loop).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
