//===- NMSparseMatmulOp.cpp - maps and verifier of the product ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedWeight.h"
#include "SizeLimits.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/StoredTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static AffineMap getMap(ArrayAttr maps, unsigned i) {
  return cast<AffineMapAttr>(maps[i]).getValue();
}
AffineMap MatmulOp::getXMap() { return getMap(getIndexingMaps(), 0); }
AffineMap MatmulOp::getWeightMap() { return getMap(getIndexingMaps(), 1); }
AffineMap MatmulOp::getResultMap() { return getMap(getIndexingMaps(), 2); }

/// Position of loop `loop` among the results of `map`.
static int64_t getResultDim(AffineMap map, unsigned loop) {
  return *map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

int64_t MatmulOp::getXReductionDim() {
  return getResultDim(getXMap(), getReductionLoop());
}
int64_t MatmulOp::getXTokenDim() {
  return getResultDim(getXMap(), getTokenLoop());
}
bool MatmulOp::isXFeatureMajor() {
  return getXTokenDim() == cast<ShapedType>(getX().getType()).getRank() - 1;
}
bool MatmulOp::isResultFeatureMajor() {
  return getResultDim(getResultMap(), getTokenLoop()) ==
         cast<ShapedType>(getInit().getType()).getRank() - 1;
}

std::optional<BitmapTile> MatmulOp::getStoredTile() {
  WeightStorageInterface storage = getStorageAttr();
  if (!storage)
    return std::nullopt;
  return storage.getStoredTile(getElementTypeOrSelf(getValues()));
}

std::optional<ListedPanels> MatmulOp::getListedPanels() {
  WeightStorageInterface storage = getStorageAttr();
  return storage ? storage.getListedPanels() : std::nullopt;
}

EncodingAttr MatmulOp::getTileEncoding() {
  WeightStorageInterface storage = getStorageAttr();
  if (!storage)
    return getEncoding();
  // The windows of a tile with a dynamic contraction are not known.
  int64_t k = getContractionSize();
  return cast<EncodingAttr>(storage.getTilePattern(
      ShapedType::isDynamic(k) ? EncodingAttr::kMaxWindowRows : k));
}

int64_t MatmulOp::getNumWindows() {
  if (getListedPanels()) {
    int64_t k = getContractionSize();
    return ShapedType::isDynamic(k)
               ? k
               : llvm::divideCeil(k, getEncoding().getWindowRows());
  }
  auto index = cast<RankedTensorType>(getIndex().getType());
  std::optional<BitmapTile> tile = getStoredTile();
  if (tile && !getInnerIndex()) {
    int64_t tiles = index.getDimSize(index.getRank() - 2);
    return ShapedType::isDynamic(tiles)
               ? tiles
               : tiles * (tile->rows / getEncoding().getWindowRows());
  }
  int64_t rows = index.getDimSize(index.getRank() - 2);
  return ShapedType::isDynamic(rows) ? rows : rows / getEncoding().getN();
}

int64_t MatmulOp::getContractionSize() {
  return cast<RankedTensorType>(getX().getType())
      .getDimSize(getXReductionDim());
}

AffineMap MatmulOp::getMatchingIndexingMap(OpOperand *operand) {
  if (operand == &getXMutable())
    return getXMap();
  if (isDpsInit(operand))
    return getResultMap();
  return AffineMap::get(getXMap().getNumDims(), 0, getContext());
}

SmallVector<int64_t> MatmulOp::getStaticOperandShape(OpOperand *operand) {
  auto type = dyn_cast<ShapedType>(operand->get().getType());
  return type ? SmallVector<int64_t>(type.getShape()) : SmallVector<int64_t>();
}

/// The default asks all operands, and components have other shapes than the
/// logical weight. The other two operands have all loops.
SmallVector<int64_t> MatmulOp::getStaticLoopRanges() {
  SmallVector<int64_t> ranges(getReductionLoop() + 1, ShapedType::kDynamic);
  for (auto [operand, map] :
       {std::pair(getX(), getXMap()), std::pair(getInit(), getResultMap())}) {
    auto type = cast<ShapedType>(operand.getType());
    for (auto [dim, extent] : llvm::enumerate(type.getShape()))
      if (ShapedType::isStatic(extent))
        ranges[map.getDimPosition(dim)] = extent;
  }
  return ranges;
}

LogicalResult
MatmulOp::reifyResultShapes(OpBuilder &builder,
                            ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  reifiedReturnShapes.push_back(
      tensor::getMixedSizes(builder, getLoc(), getInit()));
  return success();
}

/// Checks the three maps: dimension count, permutations of the right loops.
static LogicalResult verifyMaps(MatmulOp op) {
  if (op.getIndexingMaps().size() != 3)
    return op.emitOpError("needs 3 indexing maps, for x, weight and result, "
                          "got ")
           << op.getIndexingMaps().size();
  unsigned loops = op.getXMap().getNumDims();
  if (loops != 3 && loops != 4)
    return op.emitOpError("indexing maps must have the loops (m, n, k) or (b, "
                          "m, n, k), got ")
           << loops << " loops";
  unsigned m = loops - 3, n = m + 1, k = m + 2;
  struct Expected {
    const char *name;
    AffineMap map;
    Value operand;
    SmallVector<unsigned> loops;
  };
  SmallVector<unsigned> batch;
  if (loops == 4)
    batch.push_back(0);
  auto with = [&](unsigned a, unsigned b) {
    SmallVector<unsigned> result(batch);
    result.append({a, b});
    return result;
  };
  Expected expected[] = {
      {"x", op.getXMap(), op.getX(), with(m, k)},
      {"result", op.getResultMap(), op.getInit(), with(m, n)}};
  for (Expected &e : expected) {
    if (e.map.getNumDims() != loops || e.map.getNumSymbols() != 0 ||
        !e.map.isProjectedPermutation() ||
        e.map.getNumResults() != e.loops.size() ||
        llvm::any_of(e.loops, [&](unsigned loop) {
          return !e.map.getResultPosition(
              getAffineDimExpr(loop, op.getContext()));
        }))
      return op.emitOpError("map of ")
             << e.name << " must be a permutation of loops ("
             << llvm::make_range(e.loops.begin(), e.loops.end()) << "), got "
             << AffineMapAttr::get(e.map);
    if (cast<ShapedType>(e.operand.getType()).getRank() !=
        static_cast<int64_t>(e.map.getNumResults()))
      return op.emitOpError()
             << e.name << " of type " << e.operand.getType()
             << " does not fit its map " << AffineMapAttr::get(e.map);
  }
  AffineMap weight = op.getWeightMap();
  auto shared =
      AffineMap::getMultiDimMapWithTargets(loops, {k, n}, op.getContext());
  auto own = AffineMap::getMultiDimMapWithTargets(
      loops,
      loops == 4 ? ArrayRef<unsigned>{0, k, n} : ArrayRef<unsigned>{k, n},
      op.getContext());
  if (weight != shared && weight != own)
    return op.emitOpError("map of the weight must be ")
           << AffineMapAttr::get(own)
           << (loops == 4 ? " (or without the batch)" : "")
           << " because the packed form is canonical, got "
           << AffineMapAttr::get(weight);
  return success();
}

/// Checks that all operands agree on the number of tokens and batch entries.
static LogicalResult verifyParallelExtents(MatmulOp op) {
  struct Use {
    const char *name;
    Value operand;
    AffineMap map;
  };
  SmallVector<Use> uses = {{"x", op.getX(), op.getXMap()},
                           {"result", op.getInit(), op.getResultMap()}};
  if (!op.getListedPanels())
    uses.push_back({"index", op.getIndex(), op.getWeightMap()});
  else if (op.getPanels())
    uses.push_back({"panels", op.getPanels(), op.getWeightMap()});
  // Free elements of all batch entries lie one after the other.
  if (!op.getEncoding().isFree())
    uses.insert(uses.begin() + 1,
                {"values", op.getValues(), op.getWeightMap()});
  for (unsigned loop = 0; loop <= op.getTokenLoop(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, op.getContext());
    const Use *first = nullptr;
    int64_t known = 0;
    for (const Use &use : uses) {
      std::optional<unsigned> dim = use.map.getResultPosition(expr);
      if (!dim)
        continue;
      int64_t extent = cast<ShapedType>(use.operand.getType()).getDimSize(*dim);
      if (ShapedType::isDynamic(extent))
        continue;
      if (first && extent != known)
        return op.emitOpError()
               << first->name << " has " << known
               << (loop == op.getTokenLoop() ? " tokens, " : " batch entries, ")
               << use.name << " has " << extent;
      first = &use;
      known = extent;
    }
  }
  return success();
}

/// Checks that no loop is known to be empty: tiles, and the model that chooses
/// them, divide by these sizes. Nor may they overflow.
static LogicalResult verifySizes(MatmulOp op) {
  static constexpr const char *names[] = {"batch", "number of tokens",
                                          "number of outputs", "contraction"};
  SmallVector<std::pair<Value, AffineMap>> uses = {
      {op.getX(), op.getXMap()}, {op.getInit(), op.getResultMap()}};
  if (!op.getListedPanels())
    uses.push_back({op.getIndex(), op.getWeightMap()});
  // A weight of free elements may keep none.
  if (!op.getEncoding().isFree())
    uses.insert(uses.begin() + 1, {op.getValues(), op.getWeightMap()});
  unsigned first = op.hasBatch() ? 0 : 1; // loop 0 is that of names[first]
  for (auto &[operand, map] : uses) {
    auto type = cast<ShapedType>(operand.getType());
    for (unsigned i = 0, e = map.getNumResults(); i < e; ++i)
      if (type.getDimSize(i) == 0)
        return op.emitOpError("has a ")
               << names[first + map.getDimPosition(i)] << " of 0 in " << type
               << ", legal is at least 1";
  }
  auto emitError = [&] { return op.emitOpError(); };
  for (auto [name, operand] : {std::pair<const char *, Value>{"x", op.getX()},
                               {"values", op.getValues()},
                               {"index", op.getIndex()},
                               {"result", op.getInit()}})
    if (failed(verifySizeLimits(cast<ShapedType>(operand.getType()).getShape(),
                                name, emitError)))
      return failure();
  return success();
}

/// The types of elements, and the ranks of the packed weight.
static LogicalResult verifyTypes(MatmulOp op) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  auto init = cast<RankedTensorType>(op.getInit().getType());
  if (op.getResult().getType() != init)
    return op.emitOpError("result type must be that of init, ")
           << init << ", got " << op.getResult().getType();
  if (x.getElementType() != values.getElementType())
    return op.emitOpError("x and values must have one element type, got ")
           << x.getElementType() << " and " << values.getElementType();
  if (!isStoredType(x.getElementType()))
    return op.emitOpError("x and values have element type ")
           << x.getElementType() << ", legal are "
           << listStoredTypes(op.getContext());
  // Sums of integers do not fit into the type of x.
  Type initElement = init.getElementType();
  Type accumulator = getAccumulatorType(x.getElementType());
  bool isFloat = isa<FloatType>(accumulator);
  if (initElement != accumulator &&
      !(isFloat && initElement == x.getElementType()))
    return op.emitOpError("result must have element type ")
           << (isFloat ? "f32 or that of x" : "i32") << ", got " << initElement;
  if (op.getStorageAttr() && !op.getInnerIndex())
    return success();
  if (!index.getElementType().isSignlessInteger(
          op.getEncoding().getIndexBitWidth()))
    return op.emitOpError("index must have element type i")
           << op.getEncoding().getIndexBitWidth() << " for windows of "
           << op.getEncoding().getM() << ", got " << index.getElementType();
  int64_t packedRank = op.getWeightMap().getNumResults();
  bool isStored = op.getStorageAttr() != nullptr;
  if ((!isStored && values.getRank() != packedRank) ||
      index.getRank() != packedRank)
    return op.emitOpError(isStored ? "index" : "values and index")
           << " must have rank " << packedRank << ", got " << values << " and "
           << index;
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyMaps(*this)))
    return failure();
  auto emit = [&] { return emitOpError(); };
  if (getEncoding().getOrder() != OutputOrder::Identity)
    return emitOpError("multiplies a weight as it is packed, with order = "
                       "identity, got ")
           << getEncoding()
           << ": put the outputs where they belong by nm_sparse.permute";
  if (!getStorageAttr() && failed(getEncoding().verifyPackable(emit)))
    return failure();
  return failure(
      failed(verifyTypes(*this)) || failed(verifyInnerIndex(*this)) ||
      failed(verifySizes(*this)) || failed(verifyPackedWeight(*this)) ||
      failed(verifyParallelExtents(*this)) ||
      (getConfigAttr() && failed(getConfigAttr().verifyConfig(*this))));
}
