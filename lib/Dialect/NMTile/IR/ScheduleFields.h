//===- ScheduleFields.h - text of schedules and their parts -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// People type schedules by hand, on an operation or after --schedule, so an
// error names the fields that there are. The parsers that TableGen would make
// name none.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_IR_SCHEDULEFIELDS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_IR_SCHEDULEFIELDS_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nm_sparse {

/// One `name = value` of an attribute; `parse` reads the value.
struct ScheduleField {
  StringRef name;
  std::function<ParseResult()> parse;
  bool isRequired = true;
};

/// Parses the fields of `owner`, separated by commas and in any order, up to,
/// but without, what closes them. Each is given once at most, and required ones
/// are.
ParseResult parseFields(AsmParser &parser, StringRef owner,
                        ArrayRef<ScheduleField> fields);

/// As parseFields between `<` and `>`, which may be missing where no field is
/// required.
ParseResult parseFieldsInAngles(AsmParser &parser, StringRef owner,
                                ArrayRef<ScheduleField> fields);

/// A whole number, such as one of `unit`.
ScheduleField countField(AsmParser &parser, StringRef name, StringRef unit,
                         int64_t &value, bool isRequired = true);
ScheduleField flagField(AsmParser &parser, StringRef name, bool &value);
/// `[a, b, ...]`.
ScheduleField listField(AsmParser &parser, StringRef name,
                        SmallVectorImpl<int64_t> &values);

/// One of the words that `symbolize` knows, `legal` as text.
template <typename Enum>
ScheduleField wordField(AsmParser &parser, StringRef name, StringRef legal,
                        std::optional<Enum> (*symbolize)(StringRef),
                        Enum &value) {
  auto parse = [&parser, name, legal, symbolize, &value]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef text;
    if (failed(parser.parseOptionalKeyword(&text)))
      return parser.emitError(loc) << name << " must be " << legal;
    std::optional<Enum> known = symbolize(text);
    if (!known)
      return parser.emitError(loc)
             << name << " must be " << legal << ", got '" << text << "'";
    value = *known;
    return success();
  };
  return {name, parse, /*isRequired=*/false};
}

/// A part of a schedule: an attribute of the nm_tile dialect without its
/// `#nm_tile.`, or one of another dialect in full.
ParseResult parsePart(AsmParser &parser, Attribute &part);
void printPart(AsmPrinter &printer, Attribute part);

template <typename Interface>
ScheduleField partField(AsmParser &parser, StringRef name, StringRef legal,
                        Interface &part, bool isRequired = true) {
  auto parse = [&parser, name, legal, &part]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    Attribute attribute;
    if (parsePart(parser, attribute))
      return failure();
    part = dyn_cast_or_null<Interface>(attribute);
    if (!part)
      return parser.emitError(loc)
             << name << " must be " << legal << ", got " << attribute;
    return success();
  };
  return {name, parse, isRequired};
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_IR_SCHEDULEFIELDS_H
