//===- ConstantWeight.cpp - weights that the compiler knows ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on bit patterns: what is +0 is dropped, and -0 is not.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Base/Error.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace mlir::nm_sparse;

EncodingAttr nm_sparse::getFreeEncoding(MLIRContext *context) {
  return EncodingAttr::get(context, /*n=*/0, /*m=*/0, /*blockK=*/1,
                           /*blockN=*/1, /*dim=*/0, OutputOrder::Identity);
}

/// The data of `value`, if it is a constant.
static DenseElementsAttr getData(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

PackedConstant nm_sparse::findConstantWeight(MatmulOp op) {
  if (op.getListedPanels())
    return {};
  SmallVector<Value> components = {op.getValues(), op.getIndex()};
  if (op.getInnerIndex())
    components.push_back(op.getInnerIndex());
  PackedConstant data = llvm::map_to_vector(components, getData);
  if (llvm::is_contained(data, DenseElementsAttr()))
    return {};
  return data;
}

/// The bytes of `data`, also where it is one element for all.
static SmallVector<char, 0> getBytes(DenseElementsAttr data) {
  ArrayRef<char> raw = data.getRawData();
  if (!data.isSplat())
    return SmallVector<char, 0>(raw);
  SmallVector<char, 0> bytes;
  bytes.reserve(raw.size() * data.getNumElements());
  for (int64_t i = 0; i < data.getNumElements(); ++i)
    bytes.append(raw.begin(), raw.end());
  return bytes;
}

/// Little-endian bits of one element.
static uint64_t loadBits(const char *data, int64_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, width);
  return bits;
}

int64_t nm_sparse::countElements(DenseElementsAttr values) {
  int64_t width = values.getElementType().getIntOrFloatBitWidth() / 8;
  ArrayRef<char> raw = values.getRawData();
  if (values.isSplat())
    return loadBits(raw.data(), width) ? values.getNumElements() : 0;
  int64_t count = 0;
  for (size_t at = 0; at < raw.size(); at += width)
    count += loadBits(raw.data() + at, width) != 0;
  return count;
}

uint64_t DenseWeight::getBits(int64_t row, int64_t output) const {
  int64_t width = element.getIntOrFloatBitWidth() / 8;
  return loadBits(bytes.data() + (row * outputs + output) * width, width);
}

float DenseWeight::get(int64_t row, int64_t output) const {
  auto type = cast<FloatType>(element);
  APFloat value(type.getFloatSemantics(),
                APInt(type.getWidth(), getBits(row, output)));
  bool losesInfo;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

/// How the runtime sees `weight`, and as what it is packed.
static NmsPackSpec getFreeSpec(const DenseWeight &weight) {
  auto type =
      RankedTensorType::get({weight.rows, weight.outputs}, weight.element);
  return getPackSpec(type, getFreeEncoding(type.getContext()));
}

FailureOr<DenseWeight>
nm_sparse::unpackFreeBitmap(DenseElementsAttr values, DenseElementsAttr bits,
                            int64_t rows,
                            function_ref<InFlightDiagnostic()> emitError) {
  DenseWeight weight;
  weight.rows = rows;
  weight.outputs = bits.getType().getDimSize(0) * BitmapTile::kOutputs;
  weight.element = values.getElementType();
  weight.bytes.resize(weight.rows * weight.outputs *
                      (weight.element.getIntOrFloatBitWidth() / 8));
  SmallVector<char, 0> valueBytes = getBytes(values), bitBytes = getBytes(bits);
  NmsPackSpec spec = getFreeSpec(weight);
  // Whole pieces have values of all outputs: fewer belong to no bit, and fill
  // the constant of a weight that keeps nothing.
  int64_t count = values.getNumElements();
  if (count < BitmapTile::kOutputs)
    count = 0;
  if (nmsUnpackFreeBitmap(&spec, count, valueBytes.data(),
                          reinterpret_cast<const uint32_t *>(bitBytes.data()),
                          weight.bytes.data()))
    return emitError() << nmsLastError();
  return weight;
}

/// The bitmaps of `weight`.
static FailureOr<PackedConstant>
packFreeBitmap(const DenseWeight &weight,
               function_ref<InFlightDiagnostic()> emitError) {
  NmsPackSpec spec = getFreeSpec(weight);
  int64_t size = nmsCountFreeBitmap(&spec, weight.bytes.data());
  if (size < 0)
    return emitError() << nmsLastError();
  auto type =
      RankedTensorType::get({weight.rows, weight.outputs}, weight.element);
  SmallVector<WeightComponent> components =
      getFreeEncoding(weight.element.getContext())
          .getDefaultStorage()
          .getComponents(type);
  // A weight that keeps nothing has one piece of values that no bit names:
  // tiles of a constant without any would begin behind its end.
  size = std::max<int64_t>(size, 8 * BitmapTile::kPieceBytes /
                                     weight.element.getIntOrFloatBitWidth());
  auto valuesType = RankedTensorType::get({size}, weight.element);
  RankedTensorType bitsType = components[1].type;
  SmallVector<char, 0> values(size * weight.element.getIntOrFloatBitWidth() /
                              8);
  SmallVector<uint32_t, 0> bits(bitsType.getNumElements());
  if (nmsPackFreeBitmap(&spec, weight.bytes.data(), values.data(), bits.data()))
    return emitError() << nmsLastError();
  ArrayRef<char> bitBytes(reinterpret_cast<const char *>(bits.data()),
                          bits.size() * sizeof(uint32_t));
  return PackedConstant{
      DenseElementsAttr::getFromRawBuffer(valuesType, values),
      DenseElementsAttr::getFromRawBuffer(bitsType, bitBytes)};
}

FailureOr<PackedConstant>
nm_sparse::storeAsFree(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
                       function_ref<InFlightDiagnostic()> emitError) {
  auto outputs = op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext()));
  DenseWeight weight;
  weight.rows = op.getContractionSize();
  weight.outputs =
      cast<ShapedType>(op.getInit().getType()).getDimSize(*outputs);
  weight.element = canonical.front().getElementType();
  weight.bytes.resize(weight.rows * weight.outputs *
                      (weight.element.getIntOrFloatBitWidth() / 8));
  auto type =
      RankedTensorType::get({weight.rows, weight.outputs}, weight.element);
  NmsPackSpec spec = getPackSpec(
      type, EncodingAttr::get(op.getContext(), op.getEncoding().getLevels(),
                              /*dim=*/0, OutputOrder::Identity));
  auto bytes = llvm::map_to_vector(canonical, getBytes);
  auto read = llvm::map_to_vector(
      bytes, [](const auto &of) -> const void * { return of.data(); });
  if (nmsUnpack(&spec, read.data(), weight.bytes.data()))
    return emitError() << nmsLastError();
  return packFreeBitmap(weight, emitError);
}
