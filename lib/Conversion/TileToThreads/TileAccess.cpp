//===- TileAccess.cpp - where a tile lies in a buffer ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The buffer that `buffer` is a tile of.
static Value getWhole(Value buffer) {
  while (auto tile = buffer.getDefiningOp<memref::SubViewOp>())
    buffer = tile.getSource();
  return buffer;
}

TileAccess::TileAccess(OpBuilder &b, const ThreadLayout &layout,
                       VectorTransferOpInterface transfer)
    : b(b), loc(transfer.getLoc()), layout(layout), buffer(transfer.getBase()),
      type(cast<MemRefType>(buffer.getType())), indices(transfer.getIndices()),
      inBounds(transfer.getInBoundsValues()),
      isWrite(isa<vector::TransferWriteOp>(transfer)) {
  for (unsigned side = 0; side < 2; ++side)
    if (auto dim = dyn_cast<AffineDimExpr>(
            transfer.getPermutationMap().getResult(side)))
      dims[side] = dim.getPosition();
  Value whole = getWhole(buffer);
  view = whole.getDefiningOp<PermutedViewOp>();
  interleaved = whole.getDefiningOp<InterleavedViewOp>();
  root = view          ? view.getSource()
         : interleaved ? interleaved.getSource()
                       : buffer;
}

/// Accesses that a branch around them pays for.
static constexpr size_t kLeastTogether = 8;

/// Elements of `type` in 16 bytes.
static int64_t getWidestRun(MemRefType type) {
  return 128 / type.getElementTypeBitWidth();
}

Value TileAccess::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

bool TileAccess::isContiguous(unsigned side) {
  return dims[side] == type.getRank() - 1 && type.getRank() > 0 &&
         type.isLastDimUnitStride() && (!view || side != getPermutedSide());
}

SmallVector<Value> TileAccess::getViewIndices(ArrayRef<Value> at) {
  SmallVector<Value> result(at);
  Value tile = buffer;
  while (auto subview = tile.getDefiningOp<memref::SubViewOp>()) {
    llvm::SmallBitVector dropped = subview.getDroppedDims();
    SmallVector<Value> outer;
    unsigned next = 0;
    for (auto [dim, offset] : llvm::enumerate(subview.getMixedOffsets())) {
      outer.push_back(getValueOrCreateConstantIndexOp(b, loc, offset));
      if (!dropped.test(dim))
        outer.back() =
            b.createOrFold<arith::AddIOp>(loc, outer.back(), result[next++]);
    }
    result = std::move(outer);
    tile = subview.getSource();
  }
  return result;
}

unsigned TileAccess::getPermutedSide() {
  // Which dimension of the view each one of the tile is.
  SmallVector<int64_t> of =
      llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  Value tile = buffer;
  while (auto subview = tile.getDefiningOp<memref::SubViewOp>()) {
    llvm::SmallBitVector dropped = subview.getDroppedDims();
    SmallVector<int64_t> kept;
    for (int64_t dim = 0, e = dropped.size(); dim < e; ++dim)
      if (!dropped.test(dim))
        kept.push_back(dim);
    for (int64_t &dim : of)
      dim = kept[dim];
    tile = subview.getSource();
  }
  for (unsigned side = 0; side < 2; ++side)
    if (!isBroadcast(side) &&
        of[dims[side]] == static_cast<int64_t>(view.getDim()))
      return side;
  return 2;
}

/// Elements beyond the last place are not accessed: any place will do.
Value TileAccess::lookUp(ArrayRef<Value> viewIndices) {
  Value perm = view.getPerm(), place = viewIndices[view.getDim()];
  unsigned side = getPermutedSide();
  SmallVector<Value> at;
  if (view.getBatch())
    at.push_back(viewIndices[*view.getBatch()]);
  if (side == 2 || !inBounds[side]) {
    Value extent = b.createOrFold<memref::DimOp>(
        loc, perm, static_cast<int64_t>(at.size()));
    Value last = b.createOrFold<arith::SubIOp>(loc, extent, constant(1));
    place = arith::MinUIOp::create(b, loc, place, last);
  }
  at.push_back(place);
  Value found =
      ReadOnlyLoadOp::create(b, loc, b.getI32Type(), /*once=*/false, perm, at);
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), found);
}

void TileAccess::lookUpPlaces() {
  if (!view)
    return;
  unsigned side = getPermutedSide();
  for (int64_t e = 0; e < layout.getNumElements(); ++e) {
    TileOffset offset = layout.getOffset(e);
    int64_t key = side == 2 ? 0 : side ? offset.output : offset.token;
    if (!places.contains(key))
      places[key] = lookUp(getViewIndices(getIndices(offset)));
  }
}

int64_t TileAccess::countPlaces() {
  unsigned side = getPermutedSide();
  llvm::DenseSet<int64_t> keys;
  for (int64_t e = 0; e < layout.getNumElements() && side < 2; ++e) {
    TileOffset offset = layout.getOffset(e);
    keys.insert(side ? offset.output : offset.token);
  }
  return side < 2 ? keys.size() : 1;
}

void TileAccess::usePlaces(
    const llvm::DenseMap<Value, llvm::DenseMap<int64_t, Value>> &known) {
  auto found = known.find(buffer);
  if (found == known.end())
    lookUpPlaces();
  else
    places = found->second;
}

SmallVector<Value> TileAccess::getPlace(ArrayRef<Value> at, TileOffset offset) {
  if (root == buffer)
    return SmallVector<Value>(at);
  SmallVector<Value> result = getViewIndices(at);
  if (interleaved) {
    Value entries = b.createOrFold<memref::DimOp>(loc, root, 0);
    return {b.createOrFold<arith::RemUIOp>(loc, result[0], entries),
            b.createOrFold<arith::DivUIOp>(loc, result[0], entries), result[1]};
  }
  unsigned side = getPermutedSide();
  Value place = places.lookup(side == 2 ? 0
                              : side    ? offset.output
                                        : offset.token);
  result[view.getDim()] = place ? place : lookUp(result);
  return result;
}

SmallVector<Value> TileAccess::getPlace(ArrayRef<int64_t> run) {
  TileOffset offset = layout.getOffset(run.front());
  return getPlace(getIndices(offset), offset);
}

SmallVector<Value> TileAccess::getIndices(TileOffset offset) {
  SmallVector<Value> result(indices);
  for (unsigned side = 0; side < 2; ++side) {
    if (isBroadcast(side))
      continue;
    Value &index = result[dims[side]];
    index = b.createOrFold<arith::AddIOp>(loc, index,
                                          side ? layout.output : layout.token);
    index = b.createOrFold<arith::AddIOp>(
        loc, index, constant(side ? offset.output : offset.token));
  }
  return result;
}

SmallVector<Value> TileAccess::getIndices(ArrayRef<int64_t> run) {
  return getIndices(layout.getOffset(run.front()));
}

Value TileAccess::exists(ArrayRef<Value> at) {
  Value result;
  for (unsigned side = 0; side < 2; ++side) {
    if (isBroadcast(side) || inBounds[side])
      continue;
    Value extent = memref::DimOp::create(b, loc, buffer, dims[side]);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         at[dims[side]], extent);
    result = result ? arith::AndIOp::create(b, loc, result, inside).getResult()
                    : inside;
  }
  return result;
}

SmallVector<Value> TileAccess::clamp(ArrayRef<Value> at) {
  SmallVector<Value> result(at);
  for (unsigned side = 0; side < 2; ++side) {
    if (isBroadcast(side) || inBounds[side])
      continue;
    Value extent = memref::DimOp::create(b, loc, buffer, dims[side]);
    Value last = arith::SubIOp::create(b, loc, extent, constant(1));
    Value &index = result[dims[side]];
    index = arith::MinSIOp::create(b, loc, index, last);
  }
  return result;
}

memref::SubViewOp TileAccess::getPaddedTile() {
  auto tile = buffer.getDefiningOp<memref::SubViewOp>();
  if (interleaved || (view && tile && tile.getSource() != view.getResult()))
    return {};
  return tile && getPaddedBuffer(view ? root : tile.getSource())
             ? tile
             : memref::SubViewOp();
}

/// Elements along `side` that the tile has; a write may fill padding, too.
Value TileAccess::getExtent(unsigned side) {
  int64_t dim = dims[side];
  memref::SubViewOp tile = isWrite ? getPaddedTile() : memref::SubViewOp();
  // No place is that of padding.
  if (!tile || tile.getDroppedDims().any() ||
      (view && side == getPermutedSide()))
    return memref::DimOp::create(b, loc, buffer, dim);
  Value whole = memref::DimOp::create(
      b, loc, getPaddedBuffer(view ? root : tile.getSource()), dim);
  Value first =
      getValueOrCreateConstantIndexOp(b, loc, tile.getMixedOffsets()[dim]);
  Value rest = arith::SubIOp::create(b, loc, whole, first);
  if (!layout.schedule.splitsInCluster())
    return rest;
  // A piece of a tile may end behind it, where another tile is, not padding.
  int64_t most =
      side ? layout.schedule.getTileOutputs() : layout.schedule.getTileTokens();
  return arith::MinUIOp::create(b, loc, rest, constant(most));
}

SmallVector<SmallVector<int64_t>>
TileAccess::groupByBounds(ArrayRef<TileRun> runs, size_t most) const {
  auto isTested = [&](unsigned side) {
    return !isBroadcast(side) && !inBounds[side];
  };
  SmallVector<SmallVector<int64_t>> groups;
  llvm::DenseMap<std::pair<int64_t, int64_t>, size_t> groupOf;
  for (ArrayRef<int64_t> run : runs)
    for (int64_t e : run) {
      TileOffset offset = layout.getOffset(e);
      size_t &group = groupOf
                          .try_emplace({isTested(0) ? offset.token : 0,
                                        isTested(1) ? offset.output : 0},
                                       groups.size())
                          .first->second;
      if (group < groups.size() && groups[group].size() == most)
        group = groups.size();
      if (group == groups.size())
        groups.emplace_back();
      groups[group].push_back(e);
    }
  if (llvm::all_of(groups, [](ArrayRef<int64_t> group) {
        return group.size() >= kLeastTogether;
      }))
    return groups;
  groups.clear();
  for (ArrayRef<int64_t> run : runs)
    for (int64_t e : run)
      groups.push_back({e});
  return groups;
}

Value TileAccess::allowsWide(int64_t width) {
  Value result = width > 1 ? isAligned(width) : Value();
  for (unsigned side = 0; side < 2; ++side) {
    if (isBroadcast(side) || inBounds[side])
      continue;
    Value extent = getExtent(side);
    Value end = arith::AddIOp::create(
        b, loc, indices[dims[side]],
        constant(side ? layout.tileOutputs : layout.tileTokens));
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, end, extent);
    result = result ? arith::AndIOp::create(b, loc, result, inside).getResult()
                    : inside;
  }
  return result;
}

/// Buffers of gpu.alloc start at a multiple of 256 bytes, so the strides and a
/// known place in the row decide.
bool TileAccess::isAlwaysAligned(int64_t width) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  std::optional<int64_t> place = getConstantIntValue(indices.back());
  if (!buffer.getDefiningOp<gpu::AllocOp>() || !place || *place % width != 0 ||
      failed(type.getStridesAndOffset(strides, offset)) || offset != 0)
    return false;
  return llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
    return !ShapedType::isDynamic(stride) && stride % width == 0;
  });
}

Value TileAccess::isAligned(int64_t width) {
  if (isAlwaysAligned(width))
    return Value();
  // Each row of a view is a row of what it views.
  auto rootType = cast<MemRefType>(root.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, root);
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value address = arith::AddIOp::create(
      b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, root),
      arith::MulIOp::create(b, loc, metadata.getOffset(), constant(bytes)));
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(rootType.getStridesAndOffset(strides, offset)))
    strides.assign(rootType.getRank(), ShapedType::kDynamic);
  for (int64_t d = 0; d + 1 < rootType.getRank(); ++d) {
    // Folded here: what is left to fold later depends on what else is in the
    // function, and equal kernels would differ.
    Value pitch = ShapedType::isDynamic(strides[d])
                      ? arith::MulIOp::create(b, loc, metadata.getStrides()[d],
                                              constant(bytes))
                            .getResult()
                      : constant(strides[d] * bytes);
    address = arith::OrIOp::create(b, loc, address, pitch);
  }
  address = arith::OrIOp::create(
      b, loc, address,
      arith::MulIOp::create(b, loc,
                            root == buffer ? indices.back()
                                           : getViewIndices(indices).back(),
                            constant(bytes)));
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(b, loc, address, constant(width * bytes)),
      constant(0));
}

Value TileAccess::hasWholeRuns(int64_t width) {
  if (width == 1)
    return Value();
  Value aligned = isAligned(width);
  unsigned along = isContiguous(0) ? 0 : 1;
  if (inBounds[along])
    return aligned;
  Value rest =
      arith::RemUIOp::create(b, loc, getExtent(along), constant(width));
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest,
                                        constant(0));
  return aligned ? arith::AndIOp::create(b, loc, aligned, isWhole).getResult()
                 : isWhole;
}

SmallVector<TileRun> TileAccess::getRuns() {
  int64_t width = getWidestRun(type);
  if (isContiguous(0))
    return layout.getRuns(/*alongTokens=*/true, width);
  if (isContiguous(1))
    return layout.getRuns(/*alongTokens=*/false, width);
  return layout.getRuns(/*alongTokens=*/false, 1);
}

std::pair<int64_t, int64_t> TileAccess::getKey(ArrayRef<int64_t> run) const {
  TileOffset offset = layout.getOffset(run.front());
  return {isBroadcast(0) ? 0 : offset.token,
          isBroadcast(1) ? 0 : offset.output};
}

SmallVector<TileRun> TileAccess::getDistinctRuns(
    llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> &first) {
  SmallVector<TileRun> distinct;
  for (const TileRun &run : getRuns())
    if (first.try_emplace(getKey(run), distinct.size() * run.size()).second)
      distinct.push_back(run);
  return distinct;
}

SmallVector<ArrayRef<TileRun>> nm_sparse::groupRuns(ArrayRef<TileRun> runs,
                                                    bool small) {
  size_t size = small ? std::max<size_t>(1, 32 / runs.front().size())
                      : std::max<size_t>(1, runs.size());
  SmallVector<ArrayRef<TileRun>> groups;
  for (; runs.size() > size; runs = runs.drop_front(size))
    groups.push_back(runs.take_front(size));
  groups.push_back(runs);
  return groups;
}
