//===- Places.cpp - where in a weight a part of it lies -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<Value> WeightSlice::getPlaceValues() const {
  return llvm::map_to_vector(places,
                             [](const WeightPlace &at) { return at.value; });
}

ArrayAttr WeightSlice::getPlaceNames(MLIRContext *context) const {
  if (places.empty())
    return {};
  return Builder(context).getStrArrayAttr(llvm::map_to_vector(
      places, [](const WeightPlace &at) { return at.name; }));
}

Value nm_sparse::findPlace(ValueRange places, std::optional<ArrayAttr> names,
                           StringRef name) {
  if (!names)
    return {};
  for (auto [value, own] : llvm::zip(places, names->getAsRange<StringAttr>()))
    if (own == name)
      return value;
  return {};
}

LogicalResult nm_sparse::verifyPlaces(Operation *op, ValueRange places,
                                      std::optional<ArrayAttr> names) {
  size_t count = names ? names->size() : 0;
  if (count != places.size())
    return op->emitOpError("has ")
           << places.size() << " places and " << count << " names of places";
  llvm::StringSet<> found;
  if (names)
    for (StringAttr name : names->getAsRange<StringAttr>())
      if (!found.insert(name).second)
        return op->emitOpError("has two places '") << name.getValue() << "'";
  return success();
}

ParseResult
nm_sparse::parsePlaces(OpAsmParser &parser,
                       SmallVectorImpl<OpAsmParser::UnresolvedOperand> &places,
                       ArrayAttr &names) {
  SmallVector<Attribute> found;
  auto parsePlace = [&]() -> ParseResult {
    std::string name;
    found.push_back({});
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseOperand(places.emplace_back()))
      return failure();
    found.back() = parser.getBuilder().getStringAttr(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parsePlace))
    return failure();
  if (!found.empty())
    names = parser.getBuilder().getArrayAttr(found);
  return success();
}

void nm_sparse::printPlaces(OpAsmPrinter &printer, Operation *,
                            ValueRange places, ArrayAttr names) {
  printer << '(';
  llvm::interleaveComma(llvm::zip(places, names.getAsRange<StringAttr>()),
                        printer, [&](auto place) {
                          printer.printKeywordOrString(
                              std::get<1>(place).getValue());
                          printer << " = " << std::get<0>(place);
                        });
  printer << ')';
}
