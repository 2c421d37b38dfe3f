//===- Transfers.cpp - how the operands of a product come -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

StringRef nm_sparse::getRoleName(OperandRole role) {
  switch (role) {
  case OperandRole::Activations:
    return "x";
  case OperandRole::Values:
    return "values";
  case OperandRole::Positions:
    return "index";
  }
  llvm_unreachable("all roles are named");
}

TransferAttrInterface NMTileDialect::getTransfer(StringRef name) const {
  const auto *found =
      llvm::find_if(transfers, [&](TransferAttrInterface transfer) {
        return transfer.getTransferName() == name;
      });
  return found == transfers.end() ? TransferAttrInterface() : *found;
}

/// The transfers of this dialect for `role`, as a list to read.
static std::string listTransfers(const NMTileDialect &dialect,
                                 OperandRole role) {
  SmallVector<StringRef> names;
  for (TransferAttrInterface transfer : dialect.getTransfers())
    if (transfer.brings(role))
      names.push_back(transfer.getTransferName());
  if (names.size() < 2)
    return names.empty() ? "of another dialect" : names.front().str();
  StringRef last = names.pop_back_val();
  return llvm::join(names, ", ") + " or " + last.str();
}

/// The name of a transfer of this dialect, or one of another dialect in full.
static ScheduleField transferField(AsmParser &parser, OperandRole role,
                                   TransferAttrInterface &transfer) {
  auto parse = [&parser, role, &transfer]() -> ParseResult {
    const auto &dialect =
        *parser.getContext()->getLoadedDialect<NMTileDialect>();
    SMLoc loc = parser.getCurrentLocation();
    auto fail = [&]() -> InFlightDiagnostic {
      return parser.emitError(loc) << getRoleName(role) << " must be "
                                   << listTransfers(dialect, role);
    };
    StringRef name;
    if (succeeded(parser.parseOptionalKeyword(&name))) {
      transfer = dialect.getTransfer(name);
      if (!transfer || !transfer.brings(role))
        return fail() << ", got '" << name << "'";
      return success();
    }
    Attribute attribute;
    OptionalParseResult parsed = parser.parseOptionalAttribute(attribute);
    if (!parsed.has_value())
      return fail();
    if (failed(*parsed))
      return failure();
    transfer = dyn_cast<TransferAttrInterface>(attribute);
    if (!transfer || !transfer.brings(role))
      return fail() << ", got " << attribute;
    return success();
  };
  return {getRoleName(role), parse, /*isRequired=*/false};
}

Attribute TransfersAttr::parse(AsmParser &parser, Type) {
  const auto &dialect = *parser.getContext()->getLoadedDialect<NMTileDialect>();
  TransferAttrInterface x = dialect.getTransfer("gather");
  TransferAttrInterface values = dialect.getTransfer("copy");
  TransferAttrInterface index = dialect.getTransfer("resident");
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLBrace() ||
      parseFields(parser, "transfers",
                  {transferField(parser, OperandRole::Activations, x),
                   transferField(parser, OperandRole::Values, values),
                   transferField(parser, OperandRole::Positions, index)}) ||
      parser.parseRBrace())
    return {};
  if (x && values && index)
    return get(parser.getContext(), x, values, index);
  parser.emitError(loc) << "x, values and index must all be given in this "
                           "build, which lacks a default";
  return {};
}

void TransfersAttr::print(AsmPrinter &printer) const {
  printer << "{x = ";
  printPart(printer, getX());
  printer << ", values = ";
  printPart(printer, getValues());
  printer << ", index = ";
  printPart(printer, getIndex());
  printer << "}";
}

TransfersAttr TransfersAttr::getNamed(MLIRContext *context, StringRef x,
                                      StringRef values, StringRef index) {
  const auto *dialect = context->getLoadedDialect<NMTileDialect>();
  TransferAttrInterface of[] = {dialect->getTransfer(x),
                                dialect->getTransfer(values),
                                dialect->getTransfer(index)};
  return of[0] && of[1] && of[2] ? get(context, of[0], of[1], of[2])
                                 : TransfersAttr();
}

TransferAttrInterface TransfersAttr::get(OperandRole role) const {
  switch (role) {
  case OperandRole::Activations:
    return getX();
  case OperandRole::Values:
    return getValues();
  case OperandRole::Positions:
    return getIndex();
  }
  llvm_unreachable("all operands have transfers");
}

SmallVector<TransferAttrInterface> TransfersAttr::getAll() const {
  const auto *dialect = getContext()->getLoadedDialect<NMTileDialect>();
  SmallVector<TransferAttrInterface> all(dialect->getTransfers());
  for (TransferAttrInterface transfer : {getX(), getValues(), getIndex()})
    if (!llvm::is_contained(all, transfer))
      all.push_back(transfer);
  return all;
}

bool TransfersAttr::areDirect() const {
  return getX().getUse().isDirect && getValues().getUse().isDirect &&
         getIndex().getUse().isDirect;
}

bool TransfersAttr::areBulk() const {
  return getX().getUse().isBulk && getValues().getUse().isBulk &&
         getIndex().getUse().isBulk;
}

bool TransfersAttr::areCopied() const {
  return llvm::all_of(
      ArrayRef<TransferAttrInterface>{getX(), getValues(), getIndex()},
      [](TransferAttrInterface transfer) {
        TransferUse use = transfer.getUse();
        return !use.isDirect && !use.isBulk && !use.selectsRows &&
               !use.isResident;
      });
}
