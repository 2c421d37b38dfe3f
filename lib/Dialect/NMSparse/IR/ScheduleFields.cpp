//===- ScheduleFields.cpp - optional fields of a schedule -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// People type schedules by hand, on an operation or after --schedule, so an
// error names the fields that there are. The parser that `struct` would make
// names none.
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

using namespace mlir;

static ParseResult parseFlag(AsmParser &parser, StringRef name, bool &flag) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef text;
  if (failed(parser.parseOptionalKeyword(&text)))
    return parser.emitError(loc) << name << " must be true or false";
  if (text != "true" && text != "false")
    return parser.emitError(loc)
           << name << " must be true or false, got '" << text << "'";
  flag = text == "true";
  return success();
}

static ParseResult parseCount(AsmParser &parser, StringRef name,
                              int64_t &count) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef text; // an integer may be 'true' in MLIR, which would be -1
  if (succeeded(parser.parseOptionalKeyword(&text)))
    return parser.emitError(loc)
           << name << " must be a number of warps, got '" << text << "'";
  OptionalParseResult result = parser.parseOptionalInteger(count);
  if (!result.has_value())
    return parser.emitError(loc) << name << " must be a number of warps";
  return *result;
}

ParseResult nm_sparse::parseOptionalFields(AsmParser &parser,
                                           int64_t &producers, bool &persistent,
                                           bool &tma, bool &streamK) {
  auto seen = llvm::SmallDenseSet<StringRef, 4>();
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    bool isNamed = succeeded(parser.parseOptionalKeyword(&name));
    bool *flag = name == "persistent" ? &persistent
                 : name == "tma"      ? &tma
                 : name == "stream_k" ? &streamK
                                      : nullptr;
    if (!flag && name != "producers") {
      InFlightDiagnostic diagnostic = parser.emitError(loc);
      if (isNamed)
        diagnostic << "'" << name << "' is not a field that may follow index; ";
      return diagnostic << "expected producers, persistent, tma or stream_k "
                           "here, and tile, warps, stages, split_k, operands "
                           "and index before them, in this order";
    }
    if (!seen.insert(name).second)
      return parser.emitError(loc) << name << " is given twice";
    if (parser.parseEqual() || (flag ? parseFlag(parser, name, *flag)
                                     : parseCount(parser, name, producers)))
      return failure();
  }
  return success();
}

void nm_sparse::printOptionalFields(AsmPrinter &printer, int64_t producers,
                                    bool persistent, bool tma, bool streamK) {
  if (producers != 0)
    printer << ", producers = " << producers;
  const std::pair<StringRef, bool> flags[] = {
      {"persistent", persistent}, {"tma", tma}, {"stream_k", streamK}};
  for (auto [name, flag] : flags)
    if (flag)
      printer << ", " << name << " = true";
}
