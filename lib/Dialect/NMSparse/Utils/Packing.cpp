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

std::optional<int32_t> nm_sparse::getRuntimeKind(Type type) {
  if (type.isF64())
    return NMS_F64;
  if (type.isF32())
    return NMS_F32;
  if (type.isF16())
    return NMS_F16;
  if (type.isBF16())
    return NMS_BF16;
  if (isa<Float8E4M3FNType>(type))
    return NMS_F8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return NMS_F8E5M2;
  if (type.isInteger(8))
    return NMS_I8;
  if (type.isInteger(32))
    return NMS_I32;
  return std::nullopt;
}

NmsPackSpec nm_sparse::getPackSpec(RankedTensorType weight,
                                   EncodingAttr encoding) {
  PackedShape shape = getPackedShape(weight, encoding);
  bool transposed = encoding.getDim() == weight.getRank() - 1;
  NmsPackSpec spec = {};
  spec.levelCount = encoding.getLevels().size();
  for (auto [to, from] : llvm::zip(spec.levels, encoding.getLevels()))
    to = {from.n, from.m, from.blockK, from.blockN};
  spec.batch = weight.getRank() == 3 ? shape.batch : 1;
  spec.k = shape.k;
  spec.outputs = shape.outputs;
  spec.strideB = shape.k * shape.outputs;
  spec.strideK = transposed ? 1 : shape.outputs;
  spec.strideN = transposed ? shape.k : 1;
  spec.kind = getRuntimeKind(weight.getElementType()).value_or(-1);
  return spec;
}

namespace {
/// Arrays for the components of a weight, which the runtime fills.
struct ComponentArrays {
  explicit ComponentArrays(ArrayRef<WeightComponent> components) {
    for (const WeightComponent &component : components)
      storage.emplace_back(component.type.getNumElements() *
                           component.type.getElementTypeBitWidth() / 8);
    for (SmallVector<char, 0> &bytes : storage)
      pointers.push_back(bytes.data());
  }

  PackedConstant getConstants(ArrayRef<WeightComponent> components) const {
    PackedConstant packed;
    for (auto [component, bytes] : llvm::zip_equal(components, storage))
      packed.push_back(
          DenseElementsAttr::getFromRawBuffer(component.type, bytes));
    return packed;
  }

  SmallVector<SmallVector<char, 0>> storage;
  SmallVector<void *> pointers;
};
} // namespace

/// The bitmaps of `dense`, whose data says how many values it keeps.
static FailureOr<PackedConstant>
packFree(ArrayRef<char> dense, RankedTensorType type, EncodingAttr encoding,
         function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<WeightComponent> components =
      encoding.getDefaultStorage().getComponents(type);
  NmsPackSpec spec = getPackSpec(type, encoding);
  int64_t size = nmsCountFreeBitmap(&spec, dense.data());
  if (size < 0)
    return emitError() << nmsLastError();
  WeightComponent &values = components.front();
  // A weight that keeps nothing has one piece of values that no bit names:
  // tiles of a constant without any would begin behind its end.
  size = std::max<int64_t>(size, 8 * BitmapTile::kPieceBytes /
                                     type.getElementTypeBitWidth());
  values.type = RankedTensorType::get({size}, type.getElementType());
  ComponentArrays arrays(components);
  if (nmsPackFreeBitmap(&spec, dense.data(), arrays.pointers[0],
                        static_cast<uint32_t *>(arrays.pointers[1])))
    return emitError() << nmsLastError();
  return arrays.getConstants(components);
}

/// Puts the outputs of `dense` in order, of which `perm` and a spec are filled
/// in.
static FailureOr<SmallVector<char, 0>>
putInOrder(ArrayRef<char> dense, NmsPackSpec &spec, uint32_t *perm,
           function_ref<InFlightDiagnostic()> emitError) {
  NmsPackSpec weight = spec;
  SmallVector<char, 0> ordered(dense.size());
  if (nmsFindOrder(&weight, dense.data(), perm) ||
      nmsPutInOrder(&weight, perm, dense.data(), ordered.data()) ||
      nmsOrderedSpec(&weight, &spec))
    return emitError() << nmsLastError();
  return ordered;
}

/// The ragged panels of `dense`, whose data says how many rows they have.
static FailureOr<PackedConstant>
packRagged(ArrayRef<char> dense, RankedTensorType type,
           WeightStorageInterface form,
           function_ref<InFlightDiagnostic()> emitError) {
  auto encoding = cast<EncodingAttr>(form.getPattern());
  ListedPanels listed = *form.getListedPanels();
  NmsPackSpec spec = getPackSpec(type, encoding);
  SmallVector<char, 0> ordered;
  SmallVector<uint32_t, 0> perm;
  if (encoding.getOrder() == OutputOrder::Shuffled) {
    perm.resize(spec.batch * spec.outputs);
    FailureOr<SmallVector<char, 0>> found =
        putInOrder(dense, spec, perm.data(), emitError);
    if (failed(found))
      return failure();
    ordered = std::move(*found);
    dense = ordered;
  }
  int64_t size = nmsCountRagged(&spec, listed.rows, dense.data());
  if (size < 0)
    return emitError() << nmsLastError();
  SmallVector<WeightComponent> components = form.getComponents(type);
  auto setRows = [&](WeightComponent &component, int64_t rows) {
    SmallVector<int64_t> shape(component.type.getShape());
    shape.front() = rows;
    component.type = component.type.clone(shape);
  };
  // A weight that keeps nothing has the rows of one step that no panel has:
  // tiles of a constant without any would begin behind its end.
  int64_t rows = std::max<int64_t>(size, listed.rows);
  setRows(components[0], rows);
  setRows(components[1], rows / listed.blockRows);
  ComponentArrays arrays(components);
  auto words = [&](unsigned component) {
    return static_cast<uint32_t *>(arrays.pointers[component]);
  };
  if (nmsPackRagged(&spec, listed.rows, dense.data(), arrays.pointers[0],
                    words(1), words(2)))
    return emitError() << nmsLastError();
  if (!perm.empty())
    llvm::copy(perm, words(3));
  return arrays.getConstants(components);
}

FailureOr<PackedConstant>
nm_sparse::packConstant(ElementsAttr weight, EncodingAttr encoding,
                        function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<Bytes> dense = getBytes(weight, emitError);
  if (failed(dense))
    return failure();
  auto type = flattenWeight(cast<RankedTensorType>(weight.getShapedType()));
  WeightStorageInterface form = encoding.getDefaultStorage();
  if (form.getListedPanels())
    return packRagged(dense->data, type, form, emitError);
  if (encoding.isFree())
    return packFree(dense->data, type, encoding, emitError);
  SmallVector<WeightComponent> components = encoding.getComponents(type);
  ComponentArrays arrays(components);
  NmsPackSpec spec = getPackSpec(type, encoding);
  bool isShuffled = encoding.getOrder() == OutputOrder::Shuffled;
  if (isShuffled
          ? nmsPackShuffled(&spec, /*isGiven=*/0, dense->data.data(),
                            arrays.pointers.data(),
                            static_cast<uint32_t *>(arrays.pointers.back()))
          : nmsPack(&spec, dense->data.data(), arrays.pointers.data()))
    return emitError() << nmsLastError();
  return arrays.getConstants(components);
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
nm_sparse::storeAsBitmap(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
                         function_ref<InFlightDiagnostic()> emitError) {
  DenseElementsAttr values = canonical.front(), index = canonical.back();
  FailureOr<Bytes> valueBytes = getBytes(values, emitError);
  FailureOr<Bytes> indexBytes = getBytes(index, emitError);
  if (failed(valueBytes) || failed(indexBytes))
    return failure();
  // The weight that the innermost level chooses from.
  RankedTensorType weight = getDense(op).first;
  if (op.getInnerIndex()) {
    SmallVector<int64_t> shape(weight.getShape());
    shape[shape.size() - 2] =
        op.getNumWindows() * op.getEncoding().getKeptRows();
    shape.back() = values.getType().getShape().back();
    weight = weight.clone(shape);
  }
  EncodingAttr innermost =
      op.getEncoding().getInnermostEncoding(weight.getRank());
  SmallVector<WeightComponent> components =
      BitmapAttr::get(op.getContext(), innermost).getComponents(weight);
  ComponentArrays arrays(components);
  NmsPackSpec spec = getPackSpec(weight, innermost);
  if (nmsPackBitmap(&spec, valueBytes->data.data(), indexBytes->data.data(),
                    arrays.pointers[0],
                    static_cast<uint32_t *>(arrays.pointers[1])))
    return emitError() << nmsLastError();
  PackedConstant packed = arrays.getConstants(components);
  if (op.getInnerIndex())
    packed.insert(packed.begin() + 1, canonical[1]);
  return packed;
}

FailureOr<PackedConstant>
nm_sparse::repackConstant(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
                          const SparsityLevel &pattern,
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
  EncodingAttr target = replaceLevels(encoding, pattern);
  NmsPackSpec from = getPackSpec(weight, encoding);
  NmsPackSpec to = getPackSpec(weight, target);
  SmallVector<char, 0> dense(weight.getNumElements() *
                             weight.getElementTypeBitWidth() / 8);
  SmallVector<WeightComponent> components = target.getComponents(weight);
  ComponentArrays arrays(components);
  if (nmsUnpack(&from, read.data(), dense.data()) ||
      nmsPack(&to, dense.data(), arrays.pointers.data()))
    return emitError() << nmsLastError();
  return arrays.getConstants(components);
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
