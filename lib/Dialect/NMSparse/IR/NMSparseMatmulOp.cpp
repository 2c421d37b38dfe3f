//===- NMSparseMatmulOp.cpp - maps and verifier of the product ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeLimits.h"
#include "WeightChecks.h"

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

WeightStorageInterface MatmulOp::getForm() {
  return getStorageAttr() ? getStorageAttr()
                          : WeightStorageInterface(getEncoding());
}

Value MatmulOp::getComponent(StringRef name) {
  for (auto [own, component] :
       llvm::zip(getForm().getComponentNames(), getComponents()))
    if (own == name)
      return component;
  return {};
}

Value MatmulOp::getPlace(StringRef name) {
  return findPlace(getPlaces(), getPlaceNames(), name);
}

WeightSlice MatmulOp::getWeight() {
  WeightSlice weight{llvm::to_vector(getComponents())};
  if (std::optional<ArrayAttr> names = getPlaceNames())
    for (auto [name, value] :
         llvm::zip(names->getAsRange<StringAttr>(), getPlaces()))
      weight.places.push_back({name.getValue(), value});
  return weight;
}

std::optional<BitmapTile> MatmulOp::getStoredTile() {
  return getForm().getStoredTile(getElementTypeOrSelf(getX()));
}

std::optional<ListedPanels> MatmulOp::getListedPanels() {
  return getForm().getListedPanels();
}

EncodingAttr MatmulOp::getTileEncoding() {
  // The windows of a tile with a dynamic contraction are not known.
  int64_t k = getContractionSize();
  return cast<EncodingAttr>(getForm().getTilePattern(
      ShapedType::isDynamic(k) ? EncodingAttr::kMaxWindowRows : k));
}

int64_t MatmulOp::getNumWindows() {
  std::optional<WindowCount> count =
      getForm().getWindowCount(getElementTypeOrSelf(getX()));
  if (!count) {
    int64_t k = getContractionSize();
    return ShapedType::isDynamic(k)
               ? k
               : llvm::divideCeil(k, getEncoding().getWindowRows());
  }
  auto type =
      cast<RankedTensorType>(getComponents()[count->component].getType());
  int64_t rows = type.getDimSize(type.getRank() - 2);
  return ShapedType::isDynamic(rows) ? rows
                                     : rows * count->factor / count->divisor;
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

/// Checks that x and the result have the same number of tokens and of batch
/// entries; what components have, their storage checks.
static LogicalResult verifyParallelExtents(MatmulOp op) {
  auto x = cast<ShapedType>(op.getX().getType());
  auto init = cast<ShapedType>(op.getInit().getType());
  for (unsigned loop = 0; loop <= op.getTokenLoop(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, op.getContext());
    int64_t ofX = x.getDimSize(*op.getXMap().getResultPosition(expr));
    int64_t ofInit =
        init.getDimSize(*op.getResultMap().getResultPosition(expr));
    if (ShapedType::isStatic(ofX) && ShapedType::isStatic(ofInit) &&
        ofX != ofInit)
      return op.emitOpError("x has ")
             << ofX
             << (loop == op.getTokenLoop() ? " tokens, " : " batch entries, ")
             << "result has " << ofInit;
  }
  return success();
}

/// Checks that no loop is known to be empty: tiles, and the model that chooses
/// them, divide by these sizes. Nor may they overflow.
static LogicalResult verifySizes(MatmulOp op) {
  for (auto [operand, map] : {std::pair(op.getX(), op.getXMap()),
                              std::pair(op.getInit(), op.getResultMap())})
    if (failed(verifyNotEmpty(op, operand, map)))
      return failure();
  auto emitError = [&] { return op.emitOpError(); };
  auto hasLegalSize = [&](Value operand, StringRef name) {
    return succeeded(verifySizeLimits(
        cast<ShapedType>(operand.getType()).getShape(), name, emitError));
  };
  if (!hasLegalSize(op.getX(), "x") || !hasLegalSize(op.getInit(), "result"))
    return failure();
  for (auto [name, component] :
       llvm::zip(op.getForm().getComponentNames(), op.getComponents()))
    if (!hasLegalSize(component, name))
      return failure();
  return success();
}

/// The types of elements.
static LogicalResult verifyTypes(MatmulOp op) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto init = cast<RankedTensorType>(op.getInit().getType());
  Type values = op.getComponents().empty() ? x : op.getValues().getType();
  if (op.getResult().getType() != init)
    return op.emitOpError("result type must be that of init, ")
           << init << ", got " << op.getResult().getType();
  if (x.getElementType() != getElementTypeOrSelf(values))
    return op.emitOpError("x and values must have one element type, got ")
           << x.getElementType() << " and " << getElementTypeOrSelf(values);
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
  return success();
}

/// Checks the form of the weight, and that all its components are there. A step
/// of a panel that lists its rows needs no list of panels.
static LogicalResult verifyForm(MatmulOp op) {
  if (WeightStorageInterface storage = op.getStorageAttr()) {
    if (storage.getPattern() != op.getEncoding() || isa<EncodingAttr>(storage))
      return op.emitOpError("has storage = ")
             << storage << ", legal are forms of " << op.getEncoding()
             << " other than the canonical one";
  } else if (failed(op.getEncoding().verifyPackable(
                 [&] { return op.emitOpError(); }))) {
    return failure();
  }
  WeightStorageInterface form = op.getForm();
  SmallVector<StringRef> names = form.getComponentNames();
  if (form.getListedPanels() && op.getPlace(kFirstRowPlace))
    names.pop_back();
  if (names.size() == op.getComponents().size())
    return success();
  InFlightDiagnostic error = op.emitOpError("of ") << op.getEncoding();
  if (op.getStorageAttr())
    error << " stored as " << form.getFormName();
  if (names.empty())
    error << " has no components";
  else
    error << " needs the components ";
  llvm::interleaveComma(names, error);
  if (form.getListedPanels() && !op.getPlace(kFirstRowPlace))
    error << ", or a place first_row and a part of one panel";
  return error << ", got " << op.getComponents().size();
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyMaps(*this)))
    return failure();
  if (getEncoding().getOrder() != OutputOrder::Identity)
    return emitOpError("multiplies a weight as it is packed, with order = "
                       "identity, got ")
           << getEncoding()
           << ": put the outputs where they belong by nm_sparse.permute";
  if (failed(verifyForm(*this)) ||
      failed(verifyPlaces(*this, getPlaces(), getPlaceNames())) ||
      failed(verifyTypes(*this)) || failed(verifySizes(*this)) ||
      failed(getForm().verifyMatmul(*this)) ||
      failed(verifyParallelExtents(*this)))
    return failure();
  return getConfigAttr() ? getConfigAttr().verifyConfig(*this) : success();
}
