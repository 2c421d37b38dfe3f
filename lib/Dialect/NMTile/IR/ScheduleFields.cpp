//===- ScheduleFields.cpp - text of schedules and their parts -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The names of `fields` as a list to read.
static std::string getNames(ArrayRef<ScheduleField> fields) {
  std::string text;
  for (auto [i, field] : llvm::enumerate(fields)) {
    if (i > 0)
      text += i + 1 == fields.size() ? " and " : ", ";
    text += field.name;
  }
  return text;
}

ParseResult nm_sparse::parseFields(AsmParser &parser, StringRef owner,
                                   ArrayRef<ScheduleField> fields) {
  llvm::SmallSet<StringRef, 8> seen;
  SMLoc start = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    bool isNamed = succeeded(parser.parseOptionalKeyword(&name));
    const auto *field = llvm::find_if(
        fields, [&](const ScheduleField &f) { return f.name == name; });
    if (!isNamed || field == fields.end()) {
      InFlightDiagnostic diagnostic = parser.emitError(loc);
      if (isNamed)
        diagnostic << "'" << name << "' is not a field of " << owner << "; ";
      return diagnostic << "expected " << getNames(fields);
    }
    if (!seen.insert(name).second)
      return parser.emitError(loc) << name << " is given twice";
    return failure(parser.parseEqual() || field->parse());
  };
  if (parseOne())
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parseOne())
      return failure();
  for (const ScheduleField &field : fields)
    if (field.isRequired && !seen.contains(field.name))
      return parser.emitError(start) << owner << " needs " << field.name
                                     << "; its fields are " << getNames(fields);
  return success();
}

ParseResult nm_sparse::parseFieldsInAngles(AsmParser &parser, StringRef owner,
                                           ArrayRef<ScheduleField> fields) {
  if (failed(parser.parseOptionalLess())) {
    for (const ScheduleField &field : fields)
      if (field.isRequired)
        return parser.emitError(parser.getCurrentLocation())
               << owner << " needs " << field.name << "; its fields are "
               << getNames(fields);
    return success();
  }
  return failure(parseFields(parser, owner, fields) || parser.parseGreater());
}

ScheduleField nm_sparse::countField(AsmParser &parser, StringRef name,
                                    StringRef unit, int64_t &value,
                                    bool isRequired) {
  auto parse = [&parser, name, unit, &value]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef text; // an integer may be 'true' in MLIR, which would be -1
    if (succeeded(parser.parseOptionalKeyword(&text)))
      return parser.emitError(loc) << name << " must be a number of " << unit
                                   << ", got '" << text << "'";
    OptionalParseResult result = parser.parseOptionalInteger(value);
    if (!result.has_value())
      return parser.emitError(loc) << name << " must be a number of " << unit;
    return *result;
  };
  return {name, parse, isRequired};
}

ScheduleField nm_sparse::flagField(AsmParser &parser, StringRef name,
                                   bool &value) {
  auto parse = [&parser, name, &value]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef text;
    if (failed(parser.parseOptionalKeyword(&text)))
      return parser.emitError(loc) << name << " must be true or false";
    if (text != "true" && text != "false")
      return parser.emitError(loc)
             << name << " must be true or false, got '" << text << "'";
    value = text == "true";
    return success();
  };
  return {name, parse, /*isRequired=*/false};
}

ScheduleField nm_sparse::listField(AsmParser &parser, StringRef name,
                                   SmallVectorImpl<int64_t> &values) {
  auto parse = [&parser, &values]() -> ParseResult {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(values.emplace_back());
    });
  };
  return {name, parse, /*isRequired=*/true};
}
