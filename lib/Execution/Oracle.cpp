//===- Oracle.cpp - a function of a program, on the CPU -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Oracle.h"

#include "Inputs/Inputs.h"
#include "Lowering/Entry.h"
#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/ReadModule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Oracle::Oracle() = default;
Oracle::~Oracle() = default;

llvm::Error Oracle::findArguments(Operation *op) {
  auto function = cast<func::FuncOp>(op);
  for (BlockArgument argument : function.getArguments()) {
    std::string name =
        llvm::formatv("argument {0} of @{1}", argument.getArgNumber(), entry);
    Type type = argument.getType();
    EncodingAttr encoding = getEncoding(type);
    if (!encoding) {
      expected.push_back({name, type});
      continue;
    }
    auto packed = PackedAttr::get(cast<RankedTensorType>(type));
    for (const WeightComponent &component : packed.getComponents())
      expected.push_back(
          {llvm::formatv("{0} of {1}", component.name, name), component.type});
  }
  auto types = getResultTypes(function.getFunctionType());
  if (!types)
    return types.takeError();
  results = *types;
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Oracle>> Oracle::create(StringRef program,
                                                       StringRef entry) {
  DialectRegistry registry;
  registerAllDialects(registry);
  std::unique_ptr<Oracle> oracle(new Oracle());
  oracle->context = std::make_unique<MLIRContext>(registry);
  oracle->context->loadAllAvailableDialects();
  auto parsed = parseModule(*oracle->context, program, "<program>");
  if (!parsed)
    return parsed.takeError();
  ModuleOp module = **parsed;
  if (llvm::Error error = settleEncodings(module))
    return std::move(error);
  auto found = findEntry(module, entry);
  if (!found)
    return found.takeError();
  oracle->entry = cast<func::FuncOp>(*found).getSymName().str();
  if (llvm::Error error = oracle->findArguments(*found))
    return std::move(error);
  auto lowered = lowerForCPU(module, oracle->entry);
  if (!lowered)
    return lowered.takeError();
  auto machineCode = CompiledModule::create(lowered->module.get(), 2);
  if (!machineCode)
    return machineCode.takeError();
  oracle->compiled = std::move(*machineCode);
  return std::move(oracle);
}

llvm::Error Oracle::check(size_t number, const Argument &argument) const {
  const auto &[name, type] = expected[number];
  auto tensor = dyn_cast<RankedTensorType>(type);
  ArrayRef<int64_t> shape = argument.array.shape;
  bool fits = argument.isScalar ? !tensor : bool(tensor);
  if (fits && tensor) {
    fits = tensor.getRank() == int64_t(shape.size());
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = tensor.isDynamicDim(i) || tensor.getDimSize(i) == shape[i];
  }
  Type element = getElementTypeOrSelf(type);
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  if (fits && (bits + 7) / 8 == argument.array.elementBytes)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name << ", " << type << ", was given "
     << (argument.isScalar ? "a number" : "an array of the shape [");
  if (!argument.isScalar) {
    llvm::interleaveComma(shape, os);
    os << "]";
  }
  os << " with elements of " << argument.array.elementBytes << " bytes";
  return llvm::createStringError(text);
}

llvm::Expected<std::vector<HostArray>>
Oracle::call(std::vector<Argument> &arguments) {
  if (arguments.size() != expected.size())
    return llvm::createStringError(
        llvm::formatv("@{0} takes {1} arrays, got {2}", entry, expected.size(),
                      arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (llvm::Error error = check(i, arguments[i]))
      return std::move(error);
  return compiled->call(kHostEntry, arguments, results);
}
