//===- Packing.cpp - pack and prune constants -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on the bytes of a constant, so that every bit pattern survives.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Alignment.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Row-major bytes of a constant; owns them when they had to be made.
struct Bytes {
  ArrayRef<char> data;
  SmallVector<char, 0> storage;
};

} // namespace

/// Little-endian bits of one element.
static uint64_t loadBits(const char *data, int64_t width) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < width; ++i)
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(data[i])) << (8 * i);
  return bits;
}

static FailureOr<Bytes> getBytes(ElementsAttr weight,
                                 function_ref<InFlightDiagnostic()> emitError) {
  Bytes bytes;
  ShapedType type = weight.getShapedType();
  int64_t width = type.getElementTypeBitWidth() / 8;
  int64_t count = type.getNumElements();
  auto append = [&](const APInt &bits) {
    for (int64_t i = 0; i < width; ++i)
      bytes.storage.push_back(
          static_cast<char>(bits.extractBitsAsZExtValue(8, 8 * i)));
  };
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(weight)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError() << "the data of this resource is not there";
    bytes.data = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(weight);
             dense && !dense.isSplat()) {
    bytes.data = dense.getRawData();
  } else if (isa<DenseElementsAttr, SparseElementsAttr>(weight)) {
    bytes.storage.reserve(count * width);
    if (isa<FloatType>(type.getElementType()))
      for (APFloat value : weight.getValues<APFloat>())
        append(value.bitcastToAPInt());
    else
      for (APInt value : weight.getValues<APInt>())
        append(value);
    bytes.data = bytes.storage;
  } else {
    return emitError() << "cannot read the elements of this constant; legal "
                          "are dense, sparse and dense_resource ones";
  }
  if (static_cast<int64_t>(bytes.data.size()) != count * width)
    return emitError() << "the constant has " << bytes.data.size()
                       << " bytes, expected " << count * width;
  // A resource may start anywhere; the runtime reads whole elements.
  if (!llvm::isAddrAligned(llvm::Align(llvm::PowerOf2Ceil(width)),
                           bytes.data.data())) {
    bytes.storage.assign(bytes.data.begin(), bytes.data.end());
    bytes.data = bytes.storage;
  }
  return bytes;
}

/// The components of a weight as constants. One that keeps nothing has the rows
/// of one step that no panel has, or one piece of values that no bit names:
/// tiles of a constant without any would begin behind its end.
static PackedConstant
getConstants(WeightStorageInterface form,
             MutableArrayRef<PackedComponent> components) {
  std::optional<ListedPanels> listed = form.getListedPanels();
  PackedConstant packed;
  for (auto [number, component] : llvm::enumerate(components)) {
    SmallVector<int64_t> shape(component.type.getShape());
    int64_t bits = component.type.getElementTypeBitWidth();
    if (shape.front() == 0)
      shape.front() = !listed       ? 8 * BitmapTile::kPieceBytes / bits
                      : number == 0 ? listed->rows
                                    : listed->rows / listed->blockRows;
    RankedTensorType type = component.type.clone(shape);
    component.data.resize(type.getNumElements() * bits / 8);
    packed.push_back(DenseElementsAttr::getFromRawBuffer(type, component.data));
  }
  return packed;
}

FailureOr<PackedConstant>
nm_sparse::packConstant(ElementsAttr weight, WeightStorageInterface form,
                        function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<Bytes> dense = getBytes(weight, emitError);
  if (failed(dense))
    return failure();
  auto type = flattenWeight(cast<RankedTensorType>(weight.getShapedType()));
  FailureOr<SmallVector<PackedComponent>> packed =
      form.pack(type, dense->data, emitError);
  if (failed(packed))
    return failure();
  return getConstants(form, *packed);
}

/// The dense weight of `op` as K x N, however it was declared, and its encoding
/// as that of such a weight.
static std::pair<RankedTensorType, EncodingAttr> getDense(MatmulOp op) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto outputs = op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext()));
  SmallVector<int64_t> shape = {
      op.getContractionSize(),
      cast<ShapedType>(op.getInit().getType()).getDimSize(*outputs)};
  if (op.hasBatchedWeight())
    shape.insert(shape.begin(), values.getDimSize(0));
  auto weight = RankedTensorType::get(shape, values.getElementType());
  return {weight, EncodingAttr::get(
                      op.getContext(), op.getEncoding().getLevels(),
                      /*dim=*/weight.getRank() - 2, OutputOrder::Identity)};
}

FailureOr<PackedConstant>
nm_sparse::storeConstant(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
                         WeightStorageInterface form,
                         function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<Bytes> bytes;
  for (DenseElementsAttr component : canonical) {
    FailureOr<Bytes> data = getBytes(component, emitError);
    if (failed(data))
      return failure();
    bytes.push_back(std::move(*data));
  }
  auto read = llvm::map_to_vector(
      bytes, [](const Bytes &of) -> const void * { return of.data.data(); });
  auto [weight, encoding] = getDense(op);
  NmsPackSpec from = getPackSpec(weight, encoding);
  SmallVector<char, 0> dense(weight.getNumElements() *
                             weight.getElementTypeBitWidth() / 8);
  if (nmsUnpack(&from, read.data(), dense.data()))
    return emitError() << nmsLastError();
  // The components of a product are those of a K x N weight.
  auto pattern = cast<EncodingAttr>(form.getPattern());
  form = cast<WeightStorageInterface>(form.withPattern(
      EncodingAttr::get(op.getContext(), pattern.getLevels(), encoding.getDim(),
                        OutputOrder::Identity)));
  FailureOr<SmallVector<PackedComponent>> packed =
      form.pack(weight, dense, emitError);
  if (failed(packed))
    return failure();
  return getConstants(form, *packed);
}

FailureOr<PackedConstant>
nm_sparse::repackConstant(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
                          const SparsityLevel &pattern,
                          function_ref<InFlightDiagnostic()> emitError) {
  return storeConstant(canonical, op, replaceLevels(op.getEncoding(), pattern),
                       emitError);
}

/// The number that an element stands for.
static double toDouble(uint64_t bits, Type elementType) {
  auto floatType = dyn_cast<FloatType>(elementType);
  if (!floatType)
    return static_cast<int8_t>(bits);
  APFloat value(floatType.getFloatSemantics(),
                APInt(floatType.getWidth(), bits));
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

FailureOr<DenseElementsAttr>
nm_sparse::pruneConstant(ElementsAttr weight, EncodingAttr encoding,
                         double density, RankedTensorType resultType,
                         function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<Bytes> dense = getBytes(weight, emitError);
  if (failed(dense))
    return failure();
  auto type = cast<RankedTensorType>(weight.getShapedType());
  SmallVector<char, 0> result(dense->data.size());
  NmsPackSpec spec = getPackSpec(type, encoding);
  const char *from = dense->data.data();
  int failed = encoding.getOrder() == OutputOrder::Shuffled
                   ? nmsPruneShuffled(&spec, density, /*seed=*/0,
                                      /*perm=*/nullptr, from, result.data())
               : encoding.isFree()
                   ? nmsPruneFree(&spec, density, from, result.data())
                   : nmsPrune(&spec, from, result.data());
  if (failed)
    return emitError() << nmsLastError();
  return DenseElementsAttr::getFromRawBuffer(resultType, result);
}

FailureOr<DenseElementsAttr>
nm_sparse::convertToDouble(ElementsAttr data, ShapedType resultType,
                           function_ref<InFlightDiagnostic()> emitError) {
  Type elementType = data.getShapedType().getElementType();
  int64_t width = elementType.getIntOrFloatBitWidth() / 8;
  if (!isa<FloatType>(elementType) || width < 1 || width > 8)
    return emitError() << "cannot convert elements of type " << elementType
                       << " to f64";
  if (auto dense = dyn_cast<DenseElementsAttr>(data); dense && dense.isSplat())
    return DenseElementsAttr::get(
        resultType,
        toDouble(dense.getSplatValue<APFloat>().bitcastToAPInt().getZExtValue(),
                 elementType));
  FailureOr<Bytes> bytes = getBytes(data, emitError);
  if (failed(bytes))
    return failure();
  SmallVector<double, 0> numbers;
  for (int64_t at = 0, e = bytes->data.size(); at < e; at += width)
    numbers.push_back(
        toDouble(loadBits(bytes->data.data() + at, width), elementType));
  return DenseElementsAttr::get(resultType, ArrayRef<double>(numbers));
}
