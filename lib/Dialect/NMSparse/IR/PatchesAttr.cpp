//===- PatchesAttr.cpp - the geometry of a convolution --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchesFields.h"

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr StringLiteral kImage = "chwb", kRows = "crs";

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static ParseResult parseNumbers(AsmParser &parser,
                                SmallVector<int64_t> &numbers) {
  numbers.clear();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(numbers.emplace_back());
  });
}

ParseResult nm_sparse::parsePatchesFields(
    AsmParser &parser, SmallVector<int64_t> &kernel,
    SmallVector<int64_t> &strides, SmallVector<int64_t> &dilations,
    SmallVector<int64_t> &low, SmallVector<int64_t> &high, std::string &image,
    std::string &rows) {
  kernel.clear();
  strides.assign({1, 1});
  dilations.assign({1, 1});
  low.assign({0, 0});
  high.assign({0, 0});
  image = kImage.str();
  rows = kRows.str();
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (key == "image")
      return parser.parseString(&image);
    if (key == "rows")
      return parser.parseString(&rows);
    SmallVector<int64_t> *numbers =
        llvm::StringSwitch<SmallVector<int64_t> *>(key)
            .Case("kernel", &kernel)
            .Case("strides", &strides)
            .Case("dilations", &dilations)
            .Case("low", &low)
            .Case("high", &high)
            .Default(nullptr);
    if (!numbers)
      return parser.emitError(loc)
             << "unknown key '" << key
             << "', expected 'kernel', 'strides', 'dilations', 'low', 'high', "
                "'image' or 'rows'";
    return parseNumbers(parser, *numbers);
  });
}

void nm_sparse::printPatchesFields(
    AsmPrinter &printer, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
    ArrayRef<int64_t> dilations, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
    StringRef image, StringRef rows) {
  printer << "kernel = [" << kernel << "]";
  auto print = [&](StringRef key, ArrayRef<int64_t> numbers, int64_t usual) {
    if (llvm::any_of(numbers, [&](int64_t number) { return number != usual; }))
      printer << ", " << key << " = [" << numbers << "]";
  };
  print("strides", strides, 1);
  print("dilations", dilations, 1);
  print("low", low, 0);
  print("high", high, 0);
  if (image != kImage)
    printer << ", image = \"" << image << "\"";
  if (rows != kRows)
    printer << ", rows = \"" << rows << "\"";
}

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

static bool isOrderOf(StringRef order, StringRef letters) {
  return order.size() == letters.size() &&
         llvm::all_of(letters,
                      [&](char letter) { return order.count(letter) == 1; });
}

LogicalResult PatchesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> kernel,
                                  ArrayRef<int64_t> strides,
                                  ArrayRef<int64_t> dilations,
                                  ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                                  StringRef image, StringRef rows) {
  struct Field {
    StringRef name;
    ArrayRef<int64_t> numbers;
    int64_t least;
  };
  for (const Field &field :
       {Field{"kernel", kernel, 1}, Field{"strides", strides, 1},
        Field{"dilations", dilations, 1}, Field{"low", low, 0},
        Field{"high", high, 0}}) {
    bool isLegal = field.numbers.size() == 2;
    for (int64_t number : field.numbers)
      isLegal &= number >= field.least && number <= INT16_MAX;
    if (!isLegal)
      return emitError() << field.name << " = [" << field.numbers
                         << "]: legal are two numbers from " << field.least
                         << " to " << INT16_MAX;
  }
  if (!isOrderOf(image, kImage) ||
      (image.back() != 'b' && image.front() != 'b'))
    return emitError() << "image = \"" << image
                       << "\": legal are 'c', 'h' and 'w' in any order, and "
                          "'b' last or first";
  if (!isOrderOf(rows, kRows))
    return emitError() << "rows = \"" << rows
                       << "\": legal are 'c', 'r' and 's' in any order";
  return success();
}

int64_t PatchesAttr::getOutputSize(int64_t size, unsigned axis) const {
  int64_t span = getDilations()[axis] * (getKernel()[axis] - 1) + 1;
  int64_t free = size + getLow()[axis] + getHigh()[axis] - span;
  return free < 0 ? 0 : free / getStrides()[axis] + 1;
}

SmallVector<int64_t> PatchesAttr::getRowExtents(int64_t channels) const {
  SmallVector<int64_t> extents;
  for (char letter : getRows())
    extents.push_back(letter == 'c'   ? channels
                      : letter == 'r' ? getKernel()[0]
                                      : getKernel()[1]);
  return extents;
}

PatchesAttr::Row PatchesAttr::getRow(int64_t number, int64_t channels) const {
  SmallVector<int64_t> extents = getRowExtents(channels);
  Row row{};
  for (int64_t i = 2; i >= 0; --i) {
    char letter = getRows()[i];
    int64_t &digit = letter == 'c' ? row.channel : row.place[letter == 's'];
    digit = number % extents[i];
    number /= extents[i];
  }
  return row;
}

bool PatchesAttr::isAlwaysInside(int64_t place, int64_t size,
                                 unsigned axis) const {
  int64_t first = place * getDilations()[axis] - getLow()[axis];
  int64_t last = first + (getOutputSize(size, axis) - 1) * getStrides()[axis];
  return first >= 0 && last < size;
}

RankedTensorType nm_sparse::flattenWeight(RankedTensorType weight) {
  if (weight.getRank() != 4)
    return weight;
  EncodingAttr encoding = getEncoding(weight);
  bool isOutputFirst = !encoding || encoding.getDim() == 1;
  ArrayRef<int64_t> shape = weight.getShape();
  auto flatten = [](ArrayRef<int64_t> sizes) {
    return llvm::is_contained(sizes, ShapedType::kDynamic)
               ? ShapedType::kDynamic
               : llvm::product_of(sizes);
  };
  SmallVector<int64_t, 2> sizes;
  if (isOutputFirst)
    sizes = {shape.front(), flatten(shape.drop_front())};
  else
    sizes = {flatten(shape.drop_back()), shape.back()};
  return RankedTensorType::get(sizes, weight.getElementType(),
                               weight.getEncoding());
}
