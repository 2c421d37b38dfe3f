//===- Accumulator.cpp - which thread holds what of a sum -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static SmallVector<LayoutDigit> withoutOnes(ArrayRef<LayoutDigit> digits) {
  return llvm::to_vector(llvm::make_filter_range(
      digits, [](const LayoutDigit &digit) { return digit.count != 1; }));
}

AccumulatorAttr nm_sparse::makeAccumulator(MLIRContext *context,
                                           ArrayRef<LayoutDigit> unit,
                                           ArrayRef<LayoutDigit> units,
                                           ArrayRef<LayoutDigit> elements) {
  if (!units.empty() && units.back() == LayoutDigit{TileDim::Shares, 1, 0})
    units = units.drop_back();
  return AccumulatorAttr::get(context, withoutOnes(unit), units,
                              withoutOnes(elements));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static ParseResult parseDigit(AsmParser &parser,
                              SmallVectorImpl<LayoutDigit> &digits) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  LayoutDigit digit{TileDim::Tokens, 0, 0};
  if (parser.parseKeyword(&name) || parser.parseInteger(digit.count))
    return failure();
  std::optional<TileDim> dim = symbolizeTileDim(name);
  if (!dim)
    return parser.emitError(loc) << "'" << name
                                 << "' is counted by no digit; legal are "
                                    "tokens, outputs and shares";
  digit.dim = *dim;
  digits.push_back(digit);
  if (*dim == TileDim::Shares)
    return success();
  return failure(parser.parseKeyword("by") ||
                 parser.parseInteger(digits.back().step));
}

Attribute AccumulatorAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<LayoutDigit> lists[3];
  auto parseList = [&](StringRef name,
                       SmallVectorImpl<LayoutDigit> &digits) -> ParseResult {
    return failure(
        parser.parseKeyword(name) || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parseDigit(parser, digits);
        }));
  };
  if (parser.parseLess() || parseList("unit", lists[0]) ||
      parser.parseComma() || parseList("units", lists[1]) ||
      parser.parseComma() || parseList("elements", lists[2]) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    ArrayRef<LayoutDigit>(lists[0]),
                    ArrayRef<LayoutDigit>(lists[1]),
                    ArrayRef<LayoutDigit>(lists[2]));
}

static void printDigits(AsmPrinter &printer, ArrayRef<LayoutDigit> digits) {
  printer << "[";
  llvm::interleaveComma(digits, printer, [&](const LayoutDigit &digit) {
    printer << stringifyTileDim(digit.dim) << " " << digit.count;
    if (digit.dim != TileDim::Shares)
      printer << " by " << digit.step;
  });
  printer << "]";
}

void AccumulatorAttr::print(AsmPrinter &printer) const {
  printer << "<unit = ";
  printDigits(printer, getUnit());
  printer << ", units = ";
  printDigits(printer, getUnits());
  printer << ", elements = ";
  printDigits(printer, getElements());
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Checks that the steps of `digits` along `dim` make each position once.
static LogicalResult verifyCover(function_ref<InFlightDiagnostic()> emitError,
                                 SmallVector<LayoutDigit> digits, TileDim dim) {
  llvm::erase_if(digits, [&](const LayoutDigit &d) {
    return d.dim != dim || d.count == 1;
  });
  llvm::sort(digits, [](const LayoutDigit &a, const LayoutDigit &b) {
    return a.step < b.step;
  });
  int64_t covered = 1;
  for (const LayoutDigit &digit : digits) {
    if (digit.step != covered)
      return emitError() << "must count each of the " << stringifyTileDim(dim)
                         << " once: a digit has steps of " << digit.step
                         << ", where those of smaller steps count " << covered;
    covered *= digit.count;
  }
  return success();
}

LogicalResult
AccumulatorAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<LayoutDigit> unit, ArrayRef<LayoutDigit> units,
                        ArrayRef<LayoutDigit> elements) {
  constexpr int64_t most = 1 << 16;
  SmallVector<LayoutDigit> digits(unit);
  llvm::append_range(digits, elements);
  for (const LayoutDigit &digit : digits)
    if (digit.dim == TileDim::Shares)
      return emitError() << "shares are the last digit of units";
  for (const LayoutDigit &digit : units.drop_back(units.empty() ? 0 : 1))
    if (digit.dim == TileDim::Shares)
      return emitError() << "shares are the last digit of units";
  llvm::append_range(digits, units);
  for (const LayoutDigit &digit : digits)
    if (digit.count < 1 || digit.count > most || digit.step < 0 ||
        digit.step > most)
      return emitError() << "digits count 1 to " << most << ", by steps of at "
                         << "most as much, got " << digit.count << " by "
                         << digit.step;
  constexpr int64_t mostThreads = 1024;
  for (auto [list, limit, name] :
       {std::tuple(unit, mostThreads, "threads of a unit"),
        std::tuple(units, mostThreads, "units"),
        std::tuple(elements, most, "elements")}) {
    int64_t count = 1;
    for (const LayoutDigit &digit : list) {
      count *= digit.count;
      if (count > limit)
        return emitError() << "has more than " << limit << " " << name;
    }
  }
  if (failed(verifyCover(emitError, digits, TileDim::Tokens)))
    return failure();
  return verifyCover(emitError, digits, TileDim::Outputs);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static int64_t getCount(ArrayRef<LayoutDigit> digits,
                        std::optional<TileDim> dim = std::nullopt) {
  int64_t count = 1;
  for (const LayoutDigit &digit : digits)
    count *= !dim || digit.dim == *dim ? digit.count : 1;
  return count;
}

int64_t AccumulatorAttr::getUnitExtent(TileDim dim) const {
  return getCount(getUnit(), dim) * getCount(getElements(), dim);
}

int64_t AccumulatorAttr::getExtent(TileDim dim) const {
  return getUnitExtent(dim) * getCount(getUnits(), dim);
}

int64_t AccumulatorAttr::getUnitThreads() const { return getCount(getUnit()); }

int64_t AccumulatorAttr::getNumThreads() const {
  return getUnitThreads() * getCount(getUnits());
}

int64_t AccumulatorAttr::getShares() const {
  return getCount(getUnits(), TileDim::Shares);
}

int64_t AccumulatorAttr::getNumElements() const {
  return getCount(getElements());
}

int64_t AccumulatorAttr::getRun(TileDim dim) const {
  SmallVector<LayoutDigit> digits(getElements());
  llvm::erase_if(digits, [&](const LayoutDigit &d) { return d.dim != dim; });
  llvm::sort(digits, [](const LayoutDigit &a, const LayoutDigit &b) {
    return a.step < b.step;
  });
  int64_t run = 1;
  for (const LayoutDigit &digit : digits) {
    if (digit.step != run)
      break;
    run *= digit.count;
  }
  return run;
}

std::optional<TileDim> AccumulatorAttr::getFragmentRows() const {
  ArrayRef<LayoutDigit> unit = getUnit(), elements = getElements();
  if (unit.size() < 2 || elements.size() < 2)
    return std::nullopt;
  TileDim rows = unit[1].dim, columns = unit[0].dim;
  // The rows of 16 x 8 are in order, or those of a lane are neighbours.
  bool inOrder = unit[1] == LayoutDigit{rows, 8, 1} &&
                 elements[1] == LayoutDigit{rows, 2, 8};
  bool inPairs = unit[1] == LayoutDigit{rows, 8, 2} &&
                 elements[1] == LayoutDigit{rows, 2, 1};
  bool isFragment = rows != columns && unit[0] == LayoutDigit{columns, 4, 2} &&
                    elements[0] == LayoutDigit{columns, 2, 1} &&
                    (inOrder || inPairs);
  return isFragment ? std::optional(rows) : std::nullopt;
}
