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
  PackedConstant data = llvm::map_to_vector(op.getComponents(), getData);
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

DenseWeight DenseWeight::get(DenseElementsAttr constant) {
  ArrayRef<int64_t> shape = constant.getType().getShape();
  return {shape[0], shape[1], constant.getElementType(), getBytes(constant)};
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
