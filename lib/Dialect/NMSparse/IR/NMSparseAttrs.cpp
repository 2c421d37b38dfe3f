//===- NMSparseAttrs.cpp - encoding, packed weight, schedule --------------===//
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
// ScheduleAttr
//===----------------------------------------------------------------------===//

/// Accumulators of a thread that leave room for the rest of its state in the
/// 255 registers that it may have.
static constexpr int64_t kMostAccumulators = 192;

/// What the products of a warpgroup need of a schedule.
static LogicalResult
verifyWarpgroups(function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<int64_t> tile, ArrayRef<int64_t> warps,
                 OperandMode operands) {
  if (warps[1] % 4 != 0)
    return emitError() << "wgmma warps along outputs must be a multiple of the "
                          "4 of a warpgroup, got "
                       << warps[1];
  int64_t warpgroups = warps[1] / 4;
  if (tile[1] % (warpgroups * 64) != 0)
    return emitError() << "a tile of " << tile[1] << " outputs over "
                       << warpgroups
                       << " warpgroups must be a multiple of 64 outputs for "
                          "each";
  if (tile[0] % (warps[0] * 64) != 0 || tile[0] / warps[0] > 256)
    return emitError() << "a tile of " << tile[0] << " tokens over " << warps[0]
                       << " warpgroups must be 64, 128, 192 or 256 tokens for "
                          "each";
  int64_t accumulators = tile[0] * tile[1] / (warps[0] * warps[1] * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tile[0] << " x " << tile[1]
                       << " over " << warps[0] << " x " << warps[1]
                       << " wgmma warps has " << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  if (operands != OperandMode::Packed)
    return emitError() << "a wgmma schedule needs operands = packed: warpgroup "
                          "products cannot select rows of whole windows";
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind, ArrayRef<int64_t> tile,
                                   ArrayRef<int64_t> warps, int64_t stages,
                                   int64_t splitK, OperandMode operands,
                                   IndexMode, int64_t producers,
                                   bool persistent, bool tma, bool streamK) {
  if (tile.size() != 3 || llvm::any_of(tile, [](int64_t v) { return v < 1; }))
    return emitError() << "tile must be three positive extents, [tokens, "
                          "outputs, windows]";
  if (llvm::any_of(tile, [](int64_t v) { return v > 4096; }))
    return emitError() << "tile extents must be at most 4096, got [" << tile
                       << "]";
  if (warps.size() != 2 || llvm::any_of(warps, [](int64_t v) { return v < 1; }))
    return emitError() << "warps must be two positive counts, [tokens, "
                          "outputs]";
  if (warps[0] > 32 || warps[1] > 32 || warps[0] * warps[1] > 32)
    return emitError() << "a CTA of " << warps[0] << " x " << warps[1]
                       << " warps is larger than the 32 allowed";
  if (kind == ScheduleKind::Wgmma &&
      failed(verifyWarpgroups(emitError, tile, warps, operands)))
    return failure();
  // Lanes of a simt warp lie 8 x 4 over its tile; mma.sync makes 16 x 8.
  int64_t tokenUnit = kind == ScheduleKind::Simt ? 8 : 16;
  int64_t outputUnit = kind == ScheduleKind::Simt ? 4 : 8;
  if (tile[0] % (warps[0] * tokenUnit) || tile[1] % (warps[1] * outputUnit))
    return emitError() << "a tile of " << tile[0] << " x " << tile[1]
                       << " over " << warps[0] << " x " << warps[1] << " "
                       << stringifyScheduleKind(kind)
                       << " warps must be a multiple of "
                       << warps[0] * tokenUnit << " x "
                       << warps[1] * outputUnit;
  if (stages < 2 || stages > 8)
    return emitError() << "stages must be in [2, 8], got " << stages;
  if (splitK < 1 || splitK > 64)
    return emitError() << "split_k must be in [1, 64], got " << splitK;
  if (producers < 0 || producers + warps[0] * warps[1] > 32)
    return emitError() << "producers must be in [0, "
                       << 32 - warps[0] * warps[1] << "] beside " << warps[0]
                       << " x " << warps[1] << " warps, got " << producers;
  if (kind == ScheduleKind::Wgmma && producers % 4 != 0)
    return emitError() << "producers beside wgmma warps must be a multiple of "
                          "the 4 of a warpgroup, got "
                       << producers;
  if (persistent && producers == 0)
    return emitError()
           << "persistent CTAs need producers, which fetch the next "
              "tile; got producers = 0";
  if (tma && (kind == ScheduleKind::Simt || producers == 0))
    return emitError() << "tma copies values for tensor cores, on behalf of "
                          "producers; got kind "
                       << stringifyScheduleKind(kind)
                       << ", producers = " << producers;
  if (streamK && (!persistent || splitK > 1))
    return emitError() << "stream_k = true needs persistent = true, with "
                          "producers, and split_k = 1; got persistent = "
                       << (persistent ? "true" : "false")
                       << ", producers = " << producers
                       << ", split_k = " << splitK;
  return success();
}

int64_t ScheduleAttr::getStepRows(EncodingAttr encoding) const {
  int64_t rows = getTileWindows() * encoding.getKeptRows();
  return isTensorCores() ? llvm::alignTo(rows, 16) : rows;
}

bool ScheduleAttr::isPanelAligned(EncodingAttr encoding) const {
  return encoding.getBlockN() % getTileOutputs() == 0 ||
         getTileOutputs() % encoding.getBlockN() == 0;
}

int64_t ScheduleAttr::getTilePanels(EncodingAttr encoding) const {
  int64_t panels = llvm::divideCeil(getTileOutputs(), encoding.getBlockN());
  return isPanelAligned(encoding) ? panels : panels + 1;
}

bool ScheduleAttr::isProductOfTokensByPanel(EncodingAttr encoding) const {
  return getKind() == ScheduleKind::Wgmma && getSplitK() == 1 &&
         getWarps()[0] > 1 && getWarpgroupTokens() == 64 &&
         getWarpgroupOutputs() == 256 && encoding.getBlockN() % 256 == 0;
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
