//===- Packing.cpp - pack and prune constants -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on the bytes of a constant, so that every bit pattern survives: an
// element is moved as one integer and only classified as zero, -0 or other.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"
#include <limits>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Row-major bytes of a constant; owns them when they had to be made.
struct Bytes {
  ArrayRef<char> data;
  SmallVector<char, 0> storage;
};

/// Addresses the elements of a dense weight by batch, contraction step, output.
struct DenseView {
  DenseView(RankedTensorType type, EncodingAttr encoding)
      : shape(getPackedShape(type, encoding)), encoding(encoding),
        width(type.getElementTypeBitWidth() / 8) {
    bool transposed = encoding.getDim() == type.getRank() - 1;
    strideK = transposed ? 1 : shape.outputs;
    strideN = transposed ? shape.k : 1;
    batches = type.getRank() == 3 ? shape.batch : 1;
  }

  /// Byte offset of an element.
  int64_t at(int64_t b, int64_t k, int64_t output) const {
    return ((b * shape.k * shape.outputs) + k * strideK + output * strideN) *
           width;
  }

  /// Calls `visit(byte offset, i, j)` for each element of a block that lies in
  /// the weight.
  template <typename Visit>
  void forEach(int64_t b, int64_t window, int64_t position, int64_t panel,
               Visit visit) const {
    int64_t k0 = (window * encoding.getM() + position) * encoding.getBlockK();
    int64_t n0 = panel * encoding.getBlockN();
    int64_t rows = std::min(encoding.getBlockK(), shape.k - k0);
    int64_t columns = std::min(encoding.getBlockN(), shape.outputs - n0);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        visit(at(b, k0 + i, n0 + j), i, j);
  }

  PackedShape shape;
  EncodingAttr encoding;
  int64_t width;
  int64_t strideK, strideN, batches;
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
  return bytes;
}

static DenseElementsAttr makeConstant(RankedTensorType type,
                                      ArrayRef<char> bytes) {
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

FailureOr<PackedConstant>
nm_sparse::packConstant(ElementsAttr weight, EncodingAttr encoding,
                        function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<Bytes> dense = getBytes(weight, emitError);
  if (failed(dense))
    return failure();
  auto type = cast<RankedTensorType>(weight.getShapedType());
  SmallVector<WeightComponent> components = encoding.getComponents(type);
  RankedTensorType valuesType = components[0].type;
  RankedTensorType indexType = components[1].type;
  DenseView view(type, encoding);
  const PackedShape &shape = view.shape;
  int64_t n = encoding.getN(), m = encoding.getM();
  int64_t indexWidth = encoding.getIndexBitWidth() / 8;
  bool isFloat = isa<FloatType>(type.getElementType());
  uint64_t signBit = uint64_t(1) << (8 * view.width - 1);
  SmallVector<char, 0> values(valuesType.getNumElements() * view.width, 0);
  SmallVector<char, 0> index(indexType.getNumElements() * indexWidth, 0);

  enum Rank : uint8_t { Live = 0, NegativeZero = 1, Zero = 2 };
  SmallVector<uint8_t> rank(m);
  SmallVector<int64_t> kept;
  for (int64_t b = 0; b < view.batches; ++b) {
    for (int64_t w = 0; w < shape.windows; ++w) {
      for (int64_t p = 0; p < shape.panels; ++p) {
        int64_t live = 0;
        for (int64_t position = 0; position < m; ++position) {
          rank[position] = Zero;
          view.forEach(b, w, position, p, [&](int64_t at, int64_t, int64_t) {
            uint64_t bits = loadBits(dense->data.data() + at, view.width);
            uint8_t found = bits == 0                    ? Zero
                            : isFloat && bits == signBit ? NegativeZero
                                                         : Live;
            rank[position] = std::min(rank[position], found);
          });
          live += rank[position] == Live;
        }
        if (live > n) {
          InFlightDiagnostic diag = emitError();
          diag << "weight is not " << n << ":" << m << ": window " << w
               << " of panel " << p;
          if (type.getRank() == 3)
            diag << " in batch " << b;
          return diag << " has " << live << " nonzero blocks, legal is at most "
                      << n << "; prune the weight or use a larger n";
        }
        kept.clear();
        for (uint8_t wanted : {Live, NegativeZero, Zero})
          for (int64_t position = 0;
               position < m && static_cast<int64_t>(kept.size()) < n;
               ++position)
            if (rank[position] == wanted)
              kept.push_back(position);
        llvm::sort(kept);
        for (auto [slot, position] : llvm::enumerate(kept)) {
          int64_t row = (b * shape.windows + w) * n + slot;
          char *entry = index.data() + (row * shape.panels + p) * indexWidth;
          for (int64_t i = 0; i < indexWidth; ++i)
            entry[i] = static_cast<char>(position >> (8 * i));
          int64_t columns = shape.panels * encoding.getBlockN();
          view.forEach(
              b, w, position, p, [&](int64_t at, int64_t i, int64_t j) {
                int64_t to = (row * encoding.getBlockK() + i) * columns +
                             p * encoding.getBlockN() + j;
                std::copy_n(dense->data.data() + at, view.width,
                            values.data() + to * view.width);
              });
        }
      }
    }
  }
  return PackedConstant{makeConstant(valuesType, values),
                        makeConstant(indexType, index)};
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
                         RankedTensorType resultType,
                         function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<Bytes> dense = getBytes(weight, emitError);
  if (failed(dense))
    return failure();
  auto type = cast<RankedTensorType>(weight.getShapedType());
  DenseView view(type, encoding);
  int64_t n = encoding.getN(), m = encoding.getM();
  SmallVector<char, 0> result(dense->data.begin(), dense->data.end());
  SmallVector<double> score(m);
  SmallVector<int64_t> order(m);
  for (int64_t b = 0; b < view.batches; ++b) {
    for (int64_t w = 0; w < view.shape.windows; ++w) {
      for (int64_t p = 0; p < view.shape.panels; ++p) {
        for (int64_t position = 0; position < m; ++position) {
          double sum = 0;
          view.forEach(b, w, position, p, [&](int64_t at, int64_t, int64_t) {
            double value =
                toDouble(loadBits(dense->data.data() + at, view.width),
                         type.getElementType());
            sum += value * value;
          });
          score[position] =
              sum == sum ? sum : std::numeric_limits<double>::infinity();
          order[position] = position;
        }
        llvm::sort(order, [&](int64_t a, int64_t c) {
          return score[a] != score[c] ? score[a] > score[c] : a < c;
        });
        for (int64_t position : ArrayRef<int64_t>(order).drop_front(n))
          view.forEach(b, w, position, p, [&](int64_t at, int64_t, int64_t) {
            std::fill_n(result.data() + at, view.width, 0);
          });
      }
    }
  }
  return makeConstant(resultType, result);
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
