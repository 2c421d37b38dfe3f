//===- EncodingAttr.cpp - encodings and the weights that they pack --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeLimits.h"

#include "mlir/IR/DialectImplementation.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/StoredTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.cpp.inc"

//===----------------------------------------------------------------------===//
// EncodingAttr: text
//===----------------------------------------------------------------------===//

/// `n:m` or `free`.
static ParseResult parseDistribution(AsmParser &parser, SparsityLevel &level) {
  SMLoc loc = parser.getCurrentLocation();
  level.n = level.m = 0;
  if (succeeded(parser.parseOptionalKeyword("free")))
    return success();
  if (parser.parseInteger(level.n) || parser.parseColon() ||
      parser.parseInteger(level.m))
    return failure();
  if (level.n < 1)
    return parser.emitError(loc) << "n must be at least 1, got " << level.n
                                 << "; write 'free' for a ragged distribution";
  return success();
}

/// `[bk, bn]`
static ParseResult parseBlock(AsmParser &parser, SparsityLevel &level) {
  return failure(parser.parseLSquare() || parser.parseInteger(level.blockK) ||
                 parser.parseComma() || parser.parseInteger(level.blockN) ||
                 parser.parseRSquare());
}

/// The rest of a level in brackets: `n:m` (`, block = [bk, bn]`)? `]`
static ParseResult parseLevel(AsmParser &parser, SparsityLevel &level) {
  if (parseDistribution(parser, level))
    return failure();
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("block") || parser.parseEqual() ||
       parseBlock(parser, level)))
    return failure();
  return parser.parseRSquare();
}

static ParseResult parseOrder(AsmParser &parser, SMLoc loc,
                              OutputOrder &order) {
  StringRef value;
  if (parser.parseKeyword(&value))
    return failure();
  std::optional<OutputOrder> parsed = symbolizeOutputOrder(value);
  if (!parsed)
    return parser.emitError(loc) << "unknown order '" << value
                                 << "', expected 'identity' or 'shuffled'";
  order = *parsed;
  return success();
}

/// `<` (`n:m` (`, block = [bk, bn]`)? | `[` level `]` (`, [` level `]`)*)
/// (`, dim = d`)? (`, order = o`)? `>`
Attribute EncodingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<SparsityLevel, 2> levels(1);
  int64_t dim = 0;
  OutputOrder order = OutputOrder::Identity;
  if (parser.parseLess())
    return {};
  bool isList = succeeded(parser.parseOptionalLSquare());
  if (isList ? parseLevel(parser, levels[0])
             : parseDistribution(parser, levels[0]))
    return {};
  auto seen = llvm::SmallDenseSet<StringRef, 4>();
  while (succeeded(parser.parseOptionalComma())) {
    if (isList && seen.empty() && succeeded(parser.parseOptionalLSquare())) {
      if (parseLevel(parser, levels.emplace_back()))
        return {};
      continue;
    }
    SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (!seen.insert(key).second) {
      parser.emitError(keyLoc) << "'" << key << "' given twice";
      return {};
    }
    ParseResult result = success();
    if (key == "block" && !isList)
      result = parseBlock(parser, levels[0]);
    else if (key == "dim")
      result = parser.parseInteger(dim);
    else if (key == "order")
      result = parseOrder(parser, keyLoc, order);
    else
      result = parser.emitError(keyLoc)
               << "unknown key '" << key << "', expected "
               << (isList ? "'dim' or 'order' after the levels, each of which "
                            "has its own 'block'"
                          : "'block', 'dim' or 'order'");
    if (result)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return EncodingAttr::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), ArrayRef(levels), dim,
                                  order);
}

static void printLevel(raw_ostream &os, const SparsityLevel &level) {
  if (level.isFree())
    os << "free";
  else
    os << level.n << ":" << level.m;
  if (level.blockK != 1 || level.blockN != 1)
    os << ", block = [" << level.blockK << ", " << level.blockN << "]";
}

void EncodingAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << "<";
  if (hasInnerLevel())
    llvm::interleaveComma(getLevels(), os, [&](const SparsityLevel &level) {
      os << "[";
      printLevel(os, level);
      os << "]";
    });
  else
    printLevel(os, getOuter());
  if (getDim() != 0)
    os << ", dim = " << getDim();
  if (getOrder() != OutputOrder::Identity)
    os << ", order = " << stringifyOutputOrder(getOrder());
  os << ">";
}

//===----------------------------------------------------------------------===//
// EncodingAttr: checks
//===----------------------------------------------------------------------===//

static LogicalResult verifyLevel(function_ref<InFlightDiagnostic()> emitError,
                                 const SparsityLevel &level) {
  auto [n, m, blockK, blockN] = level;
  if (blockK < 1 || blockN < 1)
    return emitError() << "block extents must be at least 1, got [" << blockK
                       << ", " << blockN << "]";
  if (n < 0 || m < 0)
    return emitError() << "n:m must be positive, got " << n << ":" << m;
  if (n == 0 && m != 0)
    return emitError() << "n must be at least 1, got 0:" << m;
  if (n > m)
    return emitError() << "n must not exceed m, got " << n << ":" << m;
  constexpr int64_t limit = EncodingAttr::kMaxWindowRows;
  if (m > limit || blockK > limit || m * blockK > limit)
    return emitError() << "a window of " << m << " blocks of " << blockK
                       << " rows is longer than the " << limit
                       << " rows that a window may have";
  if (blockN > (1 << 20))
    return emitError() << "a panel of " << blockN
                       << " outputs is wider than the 1048576 allowed";
  return success();
}

/// Checks that `inner` can be chosen in each window of `outer` by itself.
static LogicalResult verifyNesting(function_ref<InFlightDiagnostic()> emitError,
                                   const SparsityLevel &outer,
                                   const SparsityLevel &inner) {
  if (outer.isFree() || inner.isFree())
    return emitError() << "a 'free' distribution has no windows for a second "
                          "level; both levels must be n:m";
  if (outer.blockK % inner.blockK != 0 || outer.blockN % inner.blockN != 0)
    return emitError() << "inner blocks [" << inner.blockK << ", "
                       << inner.blockN << "] must divide the outer ones, ["
                       << outer.blockK << ", " << outer.blockN << "]";
  if (inner.getWindowRows() != outer.getKeptRows())
    return emitError() << "an inner window of " << inner.m << " x "
                       << inner.blockK << " rows must be the " << outer.n
                       << " x " << outer.blockK
                       << " rows that the outer level keeps of a window";
  return success();
}

LogicalResult EncodingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<SparsityLevel> levels, int64_t dim,
                                   OutputOrder) {
  if (levels.empty() || levels.size() > 2)
    return emitError() << "an encoding has one level or two, got "
                       << levels.size();
  for (const SparsityLevel &level : levels)
    if (failed(verifyLevel(emitError, level)))
      return failure();
  if (levels.size() == 2 &&
      failed(verifyNesting(emitError, levels[0], levels[1])))
    return failure();
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
  if (rank < 2 || rank > 4)
    return emitError()
           << "nm_sparse encoding needs a tensor of rank 2, of rank "
              "3 with a leading batch, or of rank 4 for a "
              "convolution, got rank "
           << rank;
  if (rank == 4 && getDim() > 1)
    return emitError() << "nm_sparse encoding has dim = " << getDim()
                       << ", legal for the weight of a convolution are 0, its "
                          "outputs last, and 1, its outputs first";
  if (rank != 4 && (getDim() < rank - 2 || getDim() >= rank))
    return emitError() << "nm_sparse encoding has dim = " << getDim()
                       << ", legal for a tensor of rank " << rank << " are "
                       << rank - 2 << " and " << rank - 1;
  if (failed(verifySizeLimits(shape, "a tensor with nm_sparse encoding",
                              emitError)))
    return failure();
  if (!isStoredType(elementType))
    return emitError() << "nm_sparse encoding on element type " << elementType
                       << ", legal are " << listStoredTypes(getContext());
  return success();
}

LogicalResult EncodingAttr::verifyPackable(
    function_ref<InFlightDiagnostic()> emitError) const {
  if (isFree())
    return emitError() << *this << " cannot be packed yet: 'free' names no "
                       << "number of blocks in a window; use n:m, or a storage "
                       << "that is made for it";
  return success();
}

//===----------------------------------------------------------------------===//
// EncodingAttr: sizes
//===----------------------------------------------------------------------===//

double EncodingAttr::getDensity() const {
  double density = 1;
  for (const SparsityLevel &level : getLevels())
    density *= double(level.getKeptRows()) / double(level.getWindowRows());
  return density;
}

EncodingAttr EncodingAttr::getInnermostEncoding(int64_t rank) const {
  return get(getContext(), ArrayRef(getInnermost()), /*dim=*/rank - 2,
             OutputOrder::Identity);
}

SmallVector<WeightComponent>
EncodingAttr::getComponents(RankedTensorType weight) const {
  MLIRContext *context = getContext();
  PackedShape shape = getPackedShape(weight, *this);
  auto getType = [&](int64_t rows, int64_t columns, Type element) {
    SmallVector<int64_t> extents = {rows, columns};
    if (weight.getRank() == 3)
      extents.insert(extents.begin(), shape.batch);
    return RankedTensorType::get(extents, element);
  };
  int64_t columns = shape.panels * getBlockN();
  SmallVector<WeightComponent> components = {
      {kValuesComponent, ComponentRole::Values,
       getType(shape.windows * getInnermost().getKeptRows(), columns,
               weight.getElementType())}};
  // Inner windows are outer windows, so each level has the same number of them.
  for (auto [number, level] : llvm::enumerate(getLevels()))
    components.push_back(
        {number == 0 ? kIndexComponent : kInnerIndexComponent,
         ComponentRole::Positions,
         getType(shape.windows * level.n, columns / level.blockN,
                 IntegerType::get(context, level.getIndexBitWidth())),
         static_cast<unsigned>(number)});
  if (getOrder() == OutputOrder::Shuffled)
    components.push_back(getPermComponent(weight, *this));
  return components;
}

WeightStorageInterface EncodingAttr::getDefaultStorage() const {
  return getContext()->getLoadedDialect<NMSparseDialect>()->getDefaultStorage(
      *this);
}

Attribute EncodingAttr::getPattern() const { return *this; }

StringRef EncodingAttr::getFormName() const { return "canonical"; }

Attribute EncodingAttr::withPattern(Attribute pattern) const { return pattern; }

int64_t EncodingAttr::getLayoutVersion() const {
  int64_t inOrder = isFree() ? 3 : int64_t(getLevels().size());
  return getOrder() == OutputOrder::Shuffled ? inOrder + 6 : inOrder;
}

//===----------------------------------------------------------------------===//
// PackedAttr
//===----------------------------------------------------------------------===//

LogicalResult PackedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 WeightStorageInterface storage,
                                 ArrayRef<int64_t> shape, Type elementType) {
  if (failed(cast<EncodingAttr>(storage.getPattern())
                 .verifyEncoding(shape, elementType, emitError)) ||
      failed(storage.verifyPackable(emitError)))
    return failure();
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 0; }))
    return emitError() << "the shape of a packed weight must be static";
  return success();
}

//===----------------------------------------------------------------------===//
// ComponentAttr
//===----------------------------------------------------------------------===//

LogicalResult
ComponentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, int64_t weight, PackedAttr packed) {
  if (weight < 0)
    return emitError() << "the number of a weight must not be negative, got "
                       << weight;
  SmallVector<WeightComponent> components = packed.getComponents();
  if (llvm::any_of(components, [&](const WeightComponent &component) {
        return component.name == name;
      }))
    return success();
  InFlightDiagnostic diagnostic = emitError();
  diagnostic << "a weight with " << packed.getStorage() << " has no component '"
             << name << "'; it has ";
  llvm::interleaveComma(components, diagnostic,
                        [&](const WeightComponent &component) {
                          diagnostic << "'" << component.name << "'";
                        });
  return diagnostic;
}

WeightComponent ComponentAttr::getComponent() const {
  for (const WeightComponent &component : getPacked().getComponents())
    if (component.name == getName())
      return component;
  llvm_unreachable("the verifier knows all names");
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

WeightComponent nm_sparse::getPermComponent(RankedTensorType weight,
                                            EncodingAttr encoding) {
  PackedShape shape = getPackedShape(weight, encoding);
  SmallVector<int64_t> extents = {shape.outputs};
  if (weight.getRank() == 3)
    extents.insert(extents.begin(), shape.batch);
  Type word = IntegerType::get(weight.getContext(), 32);
  return {kPermComponent, ComponentRole::Permutation,
          RankedTensorType::get(extents, word)};
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
