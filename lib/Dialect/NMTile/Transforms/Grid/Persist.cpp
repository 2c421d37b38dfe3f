//===- Persist.cpp - one CTA an SM that loops over tiles ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch that --nm-sparse-specialize-warps has split, of one CTA for each
// tile,
//
//   setup(block)
//   warp_specialize consumers { k_loop; epilogue } producers { k_loop }
//
// becomes one of as many CTAs as the chip has SMs:
//
//   warp_specialize consumers { tile_loop { setup(tile); k_loop; epilogue } }
//                   producers { tile_loop { setup(tile); k_loop } }
//
// The ring goes on from tile to tile, so the producers fill it for the next one
// while the consumers write the last. Tiles are taken in groups of neighbouring
// tokens: those that run together share their activations, and walk through the
// weights together, in L2.
//
//===----------------------------------------------------------------------===//

#include "Grid/PersistentRoles.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPERSISTPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Tokens whose tiles run together. What CTAs in flight read from device memory
/// for a K step is these tokens and, for the outputs of their tiles, the share
/// of the weight that is kept. With 132 tiles of 256 x 128 that is least at
/// 2080 * sqrt(density) tokens: 735 at 87.5 % sparse, 1040 at 75, 1470 at 50.
/// f16 products of 4096^3 and more at L = 128 take with 2048 tokens 1 to 3 %
/// longer at 50 %, 2 to 3 % at 75 and 4 to 5 % at 87.5 %; with 512 1 to 4 %
/// less at 87.5 % and 8192^3, but up to 4 % more at 50 to 75 %
/// (bench/results/h200-groups.json).
constexpr int64_t kGroupTokens = 1024;

class Persister {
public:
  Persister(gpu::LaunchOp launch, TileMatmulOp product, int64_t ctas)
      : launch(launch), product(product), ctas(ctas), b(launch),
        loc(product.getLoc()), cluster(product.getSchedule().getClusterCTAs()),
        clusterDim(product.getSchedule().getClusterDim()) {}

  LogicalResult run();

private:
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value a, Value c) { return arith::AddIOp::create(b, loc, a, c); }
  Value sub(Value a, Value c) { return arith::SubIOp::create(b, loc, a, c); }
  Value mul(Value a, Value c) {
    return b.createOrFold<arith::MulIOp>(loc, a, c);
  }
  Value div(Value a, Value c) { return arith::DivUIOp::create(b, loc, a, c); }
  Value rem(Value a, Value c) { return arith::RemUIOp::create(b, loc, a, c); }
  Value narrow(Value v) {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getI32Type(), v);
  }
  Value word(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }

  LogicalResult findRoles();
  void collectSetup();
  Value countCtas();
  void resizeGrid();
  SmallVector<Value> decode(Value tile, Value members);
  /// The coordinates, in the former grid, of the tile with number `tile`.
  SmallVector<Value> decodeEven(Value tile);
  /// The same where the K steps of a tile depend on its outputs.
  SmallVector<Value> decodeRagged(Value tile);
  void loopOverTiles(Block *role, KLoopOp steps);

  gpu::LaunchOp launch;
  TileMatmulOp product;
  int64_t ctas;
  OpBuilder b;
  Location loc;
  /// CTAs of a cluster, which have neighbouring tiles at the same time.
  int64_t cluster;
  /// The dimension of the grid along which these tiles lie.
  unsigned clusterDim;
  WarpSpecializeOp roles;
  /// The K loops of consumers and of producers.
  KLoopOp consumerSteps, producerSteps;
  /// Operations before the roles part that depend on the tile.
  SmallVector<Operation *> setup;
  /// The former grid, and the number of its CTAs.
  SmallVector<Value> grid;
  Value tiles;
};

} // namespace

/// The K loop at the top of a role, if it is one over a ring.
static KLoopOp findSteps(Block *role) {
  auto loops = role->getOps<KLoopOp>();
  if (!llvm::hasSingleElement(loops))
    return {};
  OpOperand *begin = (*loops.begin()).getRingInit();
  return begin && begin->get().getDefiningOp<RingBeginOp>() ? *loops.begin()
                                                            : KLoopOp();
}

LogicalResult Persister::findRoles() {
  roles = product->getParentOfType<WarpSpecializeOp>();
  if (roles && roles->getParentOp() == launch) {
    consumerSteps = findSteps(roles.getConsumerBlock());
    producerSteps = findSteps(roles.getProducerBlock());
  }
  if (!consumerSteps || !producerSteps)
    return product.emitOpError(
        "must be in a launch that "
        "--nm-sparse-specialize-warps has split, for its "
        "CTAs to be persistent");
  return success();
}

void Persister::collectSetup() {
  llvm::SmallPtrSet<Value, 16> dependent;
  gpu::KernelDim3 ids = launch.getBlockIds();
  for (Value id : {ids.x, ids.y, ids.z})
    dependent.insert(id);
  for (Operation &op : launch.getBody().front()) {
    if (&op == roles)
      break;
    if (llvm::none_of(op.getOperands(),
                      [&](Value v) { return dependent.contains(v); }))
      continue;
    setup.push_back(&op);
    dependent.insert_range(op.getResults());
  }
}

/// No more CTAs than tiles: none where there are no tokens. Both are whole
/// clusters.
Value Persister::countCtas() {
  auto map = AffineMap::get(0, 1,
                            {b.getAffineSymbolExpr(0),
                             b.getAffineConstantExpr(ctas / cluster * cluster)},
                            b.getContext());
  Value total = mul(mul(grid[0], grid[1]), grid[2]);
  return getValueOrCreateConstantIndexOp(
      b, loc, affine::makeComposedFoldedAffineMin(b, loc, map, {total}));
}

void Persister::resizeGrid() {
  b.setInsertionPoint(launch);
  grid = {launch.getGridSizeX(), launch.getGridSizeY(), launch.getGridSizeZ()};
  Value one = constant(1);
  launch.getGridSizeXMutable().assign(countCtas());
  launch.getGridSizeYMutable().assign(one);
  launch.getGridSizeZMutable().assign(one);
  if (cluster > 1) {
    launch.getClusterSizeXMutable().assign(constant(cluster));
    launch.getClusterSizeYMutable().assign(one);
  }

  // The kernel sees the former grid, constants as its own.
  b.setInsertionPointToStart(&launch.getBody().front());
  gpu::KernelDim3 inside = launch.getGridSize();
  Value arguments[] = {inside.x, inside.y, inside.z};
  for (auto [extent, argument] : llvm::zip_equal(grid, arguments)) {
    if (std::optional<int64_t> known = getConstantIntValue(extent))
      extent = constant(*known);
    argument.replaceAllUsesWith(extent);
  }
  // Those of a cluster count as one.
  if (cluster > 1)
    grid[clusterDim] = div(grid[clusterDim], constant(cluster));
  tiles = mul(mul(grid[0], grid[1]), grid[2]);
}

/// The tile of all, in groups of neighbouring tokens: `members` tiles along
/// tokens by all outputs, one group after the other. In 32 bits, which number
/// more tiles than memory can hold: a 64-bit division is a call.
SmallVector<Value> Persister::decode(Value tile, Value members) {
  Value width = narrow(grid[0]), height = narrow(grid[1]);
  Value plane = mul(width, height);
  bool isFlat = getConstantIntValue(grid[2]) == 1;
  Value inPlane = isFlat ? tile : rem(tile, plane);
  Value groupTiles = mul(members, height);
  Value first = mul(div(inPlane, groupTiles), members);
  Value inGroup = rem(inPlane, groupTiles);
  // The last group may have fewer.
  Value present = arith::MinUIOp::create(b, loc, members, sub(width, first));
  SmallVector<Value> coordinates = {add(first, rem(inGroup, present)),
                                    div(inGroup, present),
                                    isFlat ? word(0) : div(tile, plane)};
  for (Value &coordinate : coordinates)
    coordinate =
        arith::IndexCastUIOp::create(b, loc, b.getIndexType(), coordinate);
  return coordinates;
}

SmallVector<Value> Persister::decodeEven(Value tile) {
  int64_t tokens =
      product.getSchedule().getTileTokens() * (clusterDim == 0 ? cluster : 1);
  return decode(narrow(tile),
                word(std::max<int64_t>(1, kGroupTokens / tokens)));
}

/// Panels with the most K steps come first, each for all tokens of a group.
/// Each time that all CTAs take a tile they do so in the opposite order, so
/// that the CTA with the longest tile has the shortest one of the next. For
/// that a group has tiles for two turns.
SmallVector<Value> Persister::decodeRagged(Value tile) {
  constexpr int64_t kTurns = 2;
  tile = narrow(tile);
  Value members = narrow(launch.getGridSize().x);
  Value turn = div(tile, members);
  Value first = mul(turn, members);
  Value present =
      arith::MinUIOp::create(b, loc, members, sub(narrow(tiles), first));
  Value back = sub(add(first, add(first, present)), add(tile, word(1)));
  Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      rem(turn, word(2)), word(1));
  Value taken = arith::SelectOp::create(b, loc, isOdd, back, tile);
  Value height = narrow(grid[1]);
  Value tokenTiles = div(add(word(kTurns * ctas - 1), height), height);
  return decode(taken, tokenTiles);
}

void Persister::loopOverTiles(Block *role, KLoopOp steps) {
  OpOperand *begin = steps.getRingInit();
  Operation *start = begin->get().getDefiningOp();
  SmallVector<Operation *> body;
  for (Operation &op : role->without_terminator())
    if (&op != start)
      body.push_back(&op);

  b.setInsertionPoint(role->getTerminator());
  start->moveBefore(role->getTerminator());
  gpu::KernelDim3 ids = launch.getBlockIds();
  Value first = ids.x, step = launch.getGridSize().x, rank;
  if (cluster > 1) {
    rank = rem(first, constant(cluster));
    first = div(first, constant(cluster));
    step = div(step, constant(cluster));
  }
  auto loop = TileLoopOp::create(b, loc, first, tiles, step, begin->get());
  Block *tileBody = &loop.getBody().front();
  b.setInsertionPointToStart(tileBody);
  IRMapping map;
  bool isRagged = !getConstantIntValue(steps.getUpperBound());
  SmallVector<Value> at = isRagged ? decodeRagged(loop.getInductionVar())
                                   : decodeEven(loop.getInductionVar());
  if (cluster > 1)
    at[clusterDim] = add(mul(at[clusterDim], constant(cluster)), rank);
  map.map(ids.x, at[0]);
  map.map(ids.y, at[1]);
  map.map(ids.z, at[2]);
  for (Operation *op : setup)
    b.clone(*op, map);
  SmallVector<Operation *> perTile =
      llvm::map_to_vector(*tileBody, [](Operation &op) { return &op; });
  for (Operation *op : body) {
    op->moveBefore(tileBody, tileBody->end());
    op->walk([&](Operation *nested) {
      for (OpOperand &operand : nested->getOpOperands())
        operand.set(map.lookupOrDefault(operand.get()));
    });
  }
  begin->set(loop.getRingPosition());
  b.setInsertionPointToEnd(tileBody);
  YieldOp::create(b, loc, ValueRange{steps.getRingResult()});
  sinkToFirstUse(perTile);
  // Copies before the K loop overwrite what their role may still read for the
  // tile before.
  auto *resident = llvm::find_if(body, isTileCopy);
  if (resident != body.end()) {
    b.setInsertionPoint(*resident);
    RoleBarrierOp::create(b, loc);
  }
}

LogicalResult Persister::run() {
  if (failed(findRoles()))
    return failure();
  resizeGrid();
  collectSetup();
  for (Operation *op : setup)
    if (!isRepeatable(op, launch))
      return op->emitOpError("depends on the tile and touches memory; it can "
                             "not be repeated for the roles of a persistent "
                             "CTA");
  loopOverTiles(roles.getConsumerBlock(), consumerSteps);
  loopOverTiles(roles.getProducerBlock(), producerSteps);
  for (Operation *op : llvm::reverse(setup))
    op->erase();
  return success();
}

namespace {

struct Persist : public nm_sparse::impl::NMSparsePersistPassBase<Persist> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, TileMatmulOp>> products;
    getOperation().walk([&](TileMatmulOp op) {
      auto launch = op->getParentOfType<gpu::LaunchOp>();
      if (launch && op.getSchedule().isPersistent())
        products.emplace_back(launch, op);
    });
    if (products.empty())
      return;
    const Chip *target = findChip(chip, gpu);
    if (!target) {
      getOperation().emitError("unknown chip '")
          << chip << "', or GPU '" << gpu
          << "' of it: how many CTAs stay on it is not known";
      return signalPassFailure();
    }
    for (auto [launch, product] : products)
      if (failed(Persister(launch, product, target->multiprocessors).run()))
        return signalPassFailure();
  }
};

} // namespace
