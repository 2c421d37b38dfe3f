//===- OperandTiles.cpp - the product of a given tile of an operand -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TilingInterface of nm_sparse.matmul for drivers that have tiled a producer
// and pull the product into its loops: which tile of the iteration domain reads
// exactly a given tile of x, of init, or of a component of the weight. The
// domain counts windows, so a tile of the contraction must be whole windows,
// and one of the index whole panels.
//
//===----------------------------------------------------------------------===//

#include "NMSparseTiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ParallelCombiningOpInterface.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// A tile along one dimension of an operand, and the loop that runs along it.
struct LoopTile {
  unsigned loop;
  int64_t unit = 1;  ///< Elements of the dimension for one step of the loop,
  int64_t steps = 1; ///< or 1, and steps of the loop for one element.
  OpFoldResult offset = {}, size = {};
  int64_t extent = 0; ///< Size of the operand's dimension.
};
} // namespace

static bool isWhole(const LoopTile &tile) {
  return isConstantIntValue(tile.offset, 0) &&
         isConstantIntValue(tile.size, tile.extent);
}

/// Returns true if the tile begins and ends with a step of its loop.
static bool hasWholeSteps(const LoopTile &tile) {
  if (isWhole(tile) || tile.unit == 1)
    return true;
  if (getKnownDivisor(tile.offset) % tile.unit != 0)
    return false;
  if (getKnownDivisor(tile.size) % tile.unit == 0)
    return true;
  // The last step may be partial.
  std::optional<int64_t> offset = getConstantIntValue(tile.offset);
  std::optional<int64_t> size = getConstantIntValue(tile.size);
  return offset && size && *offset + *size == tile.extent;
}

/// Returns true if `value` is computed from an induction variable of a loop
/// that puts its results together in parallel, such as scf.forall.
static bool variesInParallel(OpFoldResult value) {
  SmallVector<Value> open;
  if (auto start = dyn_cast<Value>(value))
    open.push_back(start);
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (Operation *producer = next.getDefiningOp()) {
      llvm::append_range(open, producer->getOperands());
      continue;
    }
    Block *block = cast<BlockArgument>(next).getOwner();
    if (block->mightHaveTerminator() &&
        isa<InParallelOpInterface>(block->getTerminator()))
      return true;
  }
  return false;
}

/// The loops along the dimensions of a component in canonical form, with the
/// units in which it is stored; none where a tile of it is no tile of the
/// product.
static SmallVector<LoopTile> getComponentUnits(MatmulOp op,
                                               OpOperand *operand) {
  EncodingAttr encoding = op.getEncoding();
  if (op.getStorageAttr() || encoding.hasInnerLevel() ||
      !op.getPlaces().empty())
    return {};
  unsigned n = op.getOutputLoop(), w = op.getReductionLoop();
  SmallVector<LoopTile> dims;
  if (op.hasBatchedWeight())
    dims.push_back({0});
  if (operand->get() == op.getValues())
    dims.append({{w, encoding.getKeptRows()}, {n}});
  else if (operand->get() == op.getIndex())
    dims.append({{w, encoding.getN()}, {n, 1, encoding.getBlockN()}});
  else
    return {};
  return dims;
}

/// The tiles of the loops that read a tile of `operand`; none where there are
/// no such.
static SmallVector<LoopTile> getLoopTiles(MatmulOp op, OpOperand *operand,
                                          ArrayRef<OpFoldResult> offsets,
                                          ArrayRef<OpFoldResult> sizes) {
  SmallVector<LoopTile> tiles;
  bool isX = operand == &op.getXMutable();
  if (isX || op.isDpsInit(operand)) {
    for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults()) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      tiles.push_back({loop, loop == op.getReductionLoop()
                                 ? op.getEncoding().getWindowRows()
                                 : 1});
    }
  } else {
    tiles = getComponentUnits(op, operand);
  }
  auto type = dyn_cast<ShapedType>(operand->get().getType());
  if (!type || tiles.size() != offsets.size())
    return {};
  for (auto [dim, tile] : llvm::enumerate(tiles)) {
    tile.offset = offsets[dim];
    tile.size = sizes[dim];
    tile.extent = type.getDimSize(dim);
  }
  return tiles;
}

/// Returns true if two operands ask for one tile of the loop that both have.
static bool agree(const LoopTile &a, const LoopTile &b) {
  if (a.loop != b.loop || (isWhole(a) && isWhole(b)))
    return true;
  return a.unit == b.unit && a.steps == b.steps &&
         isEqualConstantIntOrValue(a.offset, b.offset) &&
         isEqualConstantIntOrValue(a.size, b.size);
}

/// Checks a tile along dimension `dim` of `operand`, given those of `found`.
static LogicalResult
checkLoopTile(MatmulOp op, OpOperand &operand, int64_t dim,
              const LoopTile &tile, ArrayRef<LoopTile> found,
              function_ref<InFlightDiagnostic()> emitError) {
  auto refuse = [&](auto reason) {
    if (emitError) {
      InFlightDiagnostic error = emitError();
      error << "has no tile that reads just this tile of operand #"
            << operand.getOperandNumber() << ", " << operand.get().getType()
            << ": ";
      reason(error);
    }
    return failure();
  };
  if (!hasWholeSteps(tile))
    return refuse([&](InFlightDiagnostic &error) {
      error << "along dimension " << dim
            << " legal are whole windows, which begin and end at a multiple of "
            << tile.unit;
    });
  // Parts that are computed at once would each write the sum.
  if (tile.loop == op.getReductionLoop() && !isWhole(tile) &&
      variesInParallel(tile.offset))
    return refuse([&](InFlightDiagnostic &error) {
      error << "dimension " << dim
            << " is the contraction, and a parallel loop would not sum up its "
               "parts; tile it by a sequential loop";
    });
  if (!llvm::all_of(found,
                    [&](const LoopTile &other) { return agree(tile, other); }))
    return refuse([&](InFlightDiagnostic &error) {
      error << "another operand has a different tile of loop " << tile.loop;
    });
  return success();
}

/// The tiles of all loops that the given tiles of operands name. Fails, with
/// the reason by `emitError`, which may be null.
static FailureOr<SmallVector<LoopTile>>
findLoopTiles(MatmulOp op, ArrayRef<unsigned> operandNumbers,
              ArrayRef<SmallVector<OpFoldResult>> allOffsets,
              ArrayRef<SmallVector<OpFoldResult>> allSizes,
              function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<LoopTile> found;
  for (auto [number, offsets, sizes] :
       llvm::zip_equal(operandNumbers, allOffsets, allSizes)) {
    OpOperand &operand = op->getOpOperand(number);
    SmallVector<LoopTile> tiles = getLoopTiles(op, &operand, offsets, sizes);
    if (tiles.empty()) {
      if (emitError)
        emitError() << "has no tile that reads just a tile of operand #"
                    << number << ", " << operand.get().getType()
                    << ": legal are those of x and init, and of values and "
                       "index in canonical form with one level";
      return failure();
    }
    for (auto [dim, tile] : llvm::enumerate(tiles)) {
      if (failed(checkLoopTile(op, operand, dim, tile, found, emitError)))
        return failure();
      found.push_back(tile);
    }
  }
  return found;
}

LogicalResult MatmulOp::getIterationDomainTileFromOperandTiles(
    OpBuilder &b, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes,
    SmallVectorImpl<OpFoldResult> &iterDomainOffsets,
    SmallVectorImpl<OpFoldResult> &iterDomainSizes) {
  FailureOr<SmallVector<LoopTile>> tiles =
      findLoopTiles(*this, operandNumbers, allOffsets, allSizes,
                    [&] { return emitOpError(); });
  if (failed(tiles))
    return failure();
  SmallVector<Range> domain = getIterationDomain(b);
  iterDomainOffsets.clear();
  iterDomainSizes.clear();
  for (const Range &range : domain) {
    iterDomainOffsets.push_back(range.offset);
    iterDomainSizes.push_back(range.size);
  }
  AffineExpr s0, s1, s2;
  bindSymbols(b.getContext(), s0, s1, s2);
  auto apply = [&](AffineExpr expr, OpFoldResult operand) {
    return affine::makeComposedFoldedAffineApply(b, getLoc(), expr, {operand});
  };
  for (const LoopTile &tile : *tiles) {
    if (isWhole(tile))
      continue;
    OpFoldResult &offset = iterDomainOffsets[tile.loop];
    OpFoldResult &size = iterDomainSizes[tile.loop];
    offset = apply(s0.floorDiv(tile.unit) * tile.steps, tile.offset);
    size = apply(s0.ceilDiv(tile.unit) * tile.steps, tile.size);
    // The last panel may have fewer outputs than the others.
    if (tile.steps != 1)
      size = affine::makeComposedFoldedAffineMin(
          b, getLoc(), AffineMap::get(0, 3, {s0, s1 - s2}, b.getContext()),
          {size, domain[tile.loop].size, offset});
  }
  return success();
}

FailureOr<TilingResult> MatmulOp::getTiledImplementationFromOperandTiles(
    OpBuilder &b, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes) {
  SmallVector<OpFoldResult> offsets, sizes;
  if (failed(getIterationDomainTileFromOperandTiles(
          b, operandNumbers, allOffsets, allSizes, offsets, sizes)))
    return failure();
  return getTiledImplementation(b, offsets, sizes);
}

bool MatmulOp::isOpFusableWithProducerSlices(
    ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes) {
  return succeeded(findLoopTiles(*this, operandNumbers, allOffsets, allSizes,
                                 /*emitError=*/nullptr));
}
