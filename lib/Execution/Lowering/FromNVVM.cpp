//===- FromNVVM.cpp - run a module that was lowered by hand ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/ReadModule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if a contiguous array of `shape` can be passed as `type`.
static bool accepts(MemRefType type, ArrayRef<int64_t> shape) {
  if (type.getRank() != int64_t(shape.size()))
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  auto matches = [](int64_t declared, int64_t actual) {
    return ShapedType::isDynamic(declared) || declared == actual;
  };
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (!matches(type.getDimSize(dim), shape[dim]) ||
        !matches(strides[dim], stride))
      return false;
    stride *= shape[dim];
  }
  return matches(offset, 0);
}

static bool accepts(Type type, const Argument &argument) {
  const HostArray &array = argument.array;
  if (argument.isScalar)
    return array.kind < 0 ? type.isIndex() || type.isInteger(64)
                          : getRuntimeKind(type) == array.kind;
  auto memref = dyn_cast<MemRefType>(type);
  return memref && accepts(memref, array.shape) &&
         memref.getElementTypeBitWidth() == array.elementBytes * 8;
}

static std::string describe(const Argument &argument) {
  if (argument.isScalar)
    return "a number";
  std::string shape;
  for (int64_t extent : argument.array.shape)
    shape += (shape.empty() ? "" : "x") + std::to_string(extent);
  return llvm::formatv("an array of {0} elements of {1} bytes", shape,
                       argument.array.elementBytes);
}

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static llvm::Error checkSignature(FunctionType type,
                                  ArrayRef<Argument> arguments,
                                  ArrayRef<ResultType> results) {
  if (type.getNumInputs() != arguments.size() ||
      type.getNumResults() != results.size())
    return llvm::createStringError(
        llvm::formatv("it takes {0} arguments and returns {1} results, "
                      "expected {2} and {3}",
                      type.getNumInputs(), type.getNumResults(),
                      arguments.size(), results.size())
            .str());
  for (auto [position, input] : llvm::enumerate(type.getInputs()))
    if (!accepts(input, arguments[position]))
      return llvm::createStringError(
          llvm::formatv("argument #{0} has type {1}, but is given {2}",
                        position, toString(input),
                        describe(arguments[position]))
              .str());
  for (auto [position, result] : llvm::enumerate(type.getResults())) {
    auto memref = dyn_cast<MemRefType>(result);
    if (!memref || memref.getRank() != results[position].rank ||
        getRuntimeKind(memref.getElementType()) != results[position].kind)
      return llvm::createStringError(
          llvm::formatv("result #{0} has type {1}, which is not what the "
                        "function of the input returns",
                        position, toString(result))
              .str());
  }
  return llvm::Error::success();
}

llvm::Expected<Lowered>
nm_sparse::lowerFromNVVM(MLIRContext &context, StringRef file, StringRef entry,
                         ArrayRef<Argument> arguments,
                         ArrayRef<ResultType> results, StringRef format) {
  auto module = readModule(context, file);
  if (!module)
    return module.takeError();
  auto function = (*module)->lookupSymbol<func::FuncOp>(entry);
  if (!function || function.isExternal())
    return llvm::createStringError(
        llvm::formatv("{0}: no function @{1}: expected what nm-opt "
                      "--nm-sparse-to-nvvm=host-memory=true makes of the input",
                      file, entry)
            .str());
  if (llvm::Error error =
          checkSignature(function.getFunctionType(), arguments, results))
    return llvm::createStringError(
        llvm::formatv("{0}: @{1}: {2}", file, entry, toString(std::move(error)))
            .str());
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    UnitAttr::get(&context));
  nameForHost(**module, entry);
  GPUPipelineOptions options;
  options.format = format.str();
  options.checkIndex = true;
  if (llvm::Error error = runPipeline(
          **module, "lowering of the host code",
          [&](OpPassManager &pm) { buildHostExitPipeline(pm, options); }))
    return std::move(error);
  Lowered lowered;
  lowered.module = std::move(*module);
  return std::move(lowered);
}
