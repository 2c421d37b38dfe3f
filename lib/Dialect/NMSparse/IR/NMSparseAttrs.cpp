//===- NMSparseAttrs.cpp - encoding and packed weight ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectImplementation.h"
#include "nm_sparse/Dialect/NMSparse/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// EncodingAttr
//===----------------------------------------------------------------------===//

unsigned EncodingAttr::getIndexBitWidth() const {
  if (getM() <= (1 << 8))
    return 8;
  return getM() <= (1 << 16) ? 16 : 32;
}

/// `<` (`n:m` | `free`) (`, block = [bk, bn]`)? (`, dim = d`)?
/// (`, order = o`)? `>`
Attribute EncodingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t n = 0, m = 0, blockK = 1, blockN = 1, dim = 0;
  OutputOrder order = OutputOrder::Identity;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalKeyword("free"))) {
    if (parser.parseInteger(n) || parser.parseColon() || parser.parseInteger(m))
      return {};
    if (n < 1) {
      parser.emitError(loc) << "n must be at least 1, got " << n
                            << "; write 'free' for a ragged distribution";
      return {};
    }
  }
  auto seen = llvm::SmallDenseSet<StringRef, 4>();
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (!seen.insert(key).second) {
      parser.emitError(keyLoc) << "'" << key << "' given twice";
      return {};
    }
    if (key == "block") {
      if (parser.parseLSquare() || parser.parseInteger(blockK) ||
          parser.parseComma() || parser.parseInteger(blockN) ||
          parser.parseRSquare())
        return {};
    } else if (key == "dim") {
      if (parser.parseInteger(dim))
        return {};
    } else if (key == "order") {
      StringRef value;
      if (parser.parseKeyword(&value))
        return {};
      std::optional<OutputOrder> parsed = symbolizeOutputOrder(value);
      if (!parsed) {
        parser.emitError(keyLoc) << "unknown order '" << value
                                 << "', expected 'identity' or 'shuffled'";
        return {};
      }
      order = *parsed;
    } else {
      parser.emitError(keyLoc)
          << "unknown key '" << key << "', expected 'block', 'dim' or 'order'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return EncodingAttr::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), n, m, blockK, blockN,
                                  dim, order);
}

void EncodingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (isFree())
    printer << "free";
  else
    printer << getN() << ":" << getM();
  if (getBlockK() != 1 || getBlockN() != 1)
    printer << ", block = [" << getBlockK() << ", " << getBlockN() << "]";
  if (getDim() != 0)
    printer << ", dim = " << getDim();
  if (getOrder() != OutputOrder::Identity)
    printer << ", order = " << stringifyOutputOrder(getOrder());
  printer << ">";
}

LogicalResult EncodingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t n, int64_t m, int64_t blockK,
                                   int64_t blockN, int64_t dim, OutputOrder) {
  if (blockK < 1 || blockN < 1)
    return emitError() << "block extents must be at least 1, got [" << blockK
                       << ", " << blockN << "]";
  if (n < 0 || m < 0)
    return emitError() << "n:m must be positive, got " << n << ":" << m;
  if (n == 0 && m != 0)
    return emitError() << "n must be at least 1, got 0:" << m;
  if (n > m)
    return emitError() << "n must not exceed m, got " << n << ":" << m;
  if (m > kMaxWindowRows || blockK > kMaxWindowRows ||
      m * blockK > kMaxWindowRows)
    return emitError() << "a window of " << m << " blocks of " << blockK
                       << " rows is longer than the " << kMaxWindowRows
                       << " rows that a kernel can hold";
  if (blockN > (1 << 20))
    return emitError() << "a panel of " << blockN
                       << " outputs is wider than the 1048576 allowed";
  if (dim < 0 || dim > 2)
    return emitError() << "dim must be one of the last two dimensions of a "
                          "rank-2 or rank-3 tensor, got "
                       << dim;
  return success();
}

LogicalResult EncodingAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  int64_t rank = shape.size();
  if (rank != 2 && rank != 3)
    return emitError() << "nm_sparse encoding needs a tensor of rank 2, or of "
                          "rank 3 with a leading batch, got rank "
                       << rank;
  if (getDim() < rank - 2 || getDim() >= rank)
    return emitError() << "nm_sparse encoding has dim = " << getDim()
                       << ", legal for a tensor of rank " << rank << " are "
                       << rank - 2 << " and " << rank - 1;
  const ElementFormat *format = findElementFormat(elementType);
  if (!format || !format->isStored)
    return emitError() << "nm_sparse encoding on element type " << elementType
                       << ", legal are " << listStoredTypes(getContext());
  return success();
}

//===----------------------------------------------------------------------===//
// PackedAttr
//===----------------------------------------------------------------------===//

LogicalResult PackedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 EncodingAttr encoding, ArrayRef<int64_t> shape,
                                 Type elementType) {
  if (failed(encoding.verifyEncoding(shape, elementType, emitError)))
    return failure();
  if (encoding.isFree() || encoding.getOrder() != OutputOrder::Identity)
    return emitError() << encoding << " has no packed form yet; supported are "
                       << "n:m distributions in identity order";
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 0; }))
    return emitError() << "the shape of a packed weight must be static";
  return success();
}

RankedTensorType PackedAttr::getValuesType() const {
  return getPackedTypes(getWeightType(), getEncoding()).first;
}

RankedTensorType PackedAttr::getIndexType() const {
  return getPackedTypes(getWeightType(), getEncoding()).second;
}

//===----------------------------------------------------------------------===//
// Free functions
//===----------------------------------------------------------------------===//

EncodingAttr nm_sparse::getEncoding(Type type) {
  auto tensorType = dyn_cast<RankedTensorType>(type);
  return tensorType ? dyn_cast_or_null<EncodingAttr>(tensorType.getEncoding())
                    : EncodingAttr();
}

RankedTensorType nm_sparse::stripEncoding(RankedTensorType type) {
  return getEncoding(type)
             ? RankedTensorType::get(type.getShape(), type.getElementType())
             : type;
}

PackedShape nm_sparse::getPackedShape(RankedTensorType weight,
                                      EncodingAttr encoding) {
  int64_t rank = weight.getRank();
  int64_t outputDim = 2 * rank - 3 - encoding.getDim();
  PackedShape shape;
  shape.batch = rank == 3 ? weight.getDimSize(0) : 0;
  shape.k = weight.getDimSize(encoding.getDim());
  shape.outputs = weight.getDimSize(outputDim);
  shape.windows = llvm::divideCeil(shape.k, encoding.getWindowRows());
  shape.panels = llvm::divideCeil(shape.outputs, encoding.getBlockN());
  return shape;
}

std::pair<RankedTensorType, RankedTensorType>
nm_sparse::getPackedTypes(RankedTensorType weight, EncodingAttr encoding) {
  PackedShape shape = getPackedShape(weight, encoding);
  SmallVector<int64_t> values, index;
  if (weight.getRank() == 3) {
    values.push_back(shape.batch);
    index.push_back(shape.batch);
  }
  values.append({shape.windows * encoding.getKeptRows(),
                 shape.panels * encoding.getBlockN()});
  index.append({shape.windows * encoding.getN(), shape.panels});
  auto indexElement =
      IntegerType::get(weight.getContext(), encoding.getIndexBitWidth());
  return {RankedTensorType::get(values, weight.getElementType()),
          RankedTensorType::get(index, indexElement)};
}
