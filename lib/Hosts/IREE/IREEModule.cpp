//===- IREEModule.cpp - a model for IREE, with our kernels ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Hosts/IREE/IREEModule.h"
#include "SplitWeights.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

ArrayRef<StringRef> nm_sparse::getIREEVersions() {
  static constexpr StringRef versions[] = {"3.12", "3.13"};
  return versions;
}

/// Newer MLIR has dropped linalg.add and its like, and has other syntax for
/// linalg.elementwise.
static LogicalResult generalizeElementwise(ModuleOp model) {
  IRRewriter rewriter(model.getContext());
  SmallVector<linalg::LinalgOp> named;
  model.walk([&](linalg::LinalgOp op) {
    if (linalg::isElementwise(op) &&
        !isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp, linalg::MapOp,
             linalg::TransposeOp, linalg::BroadcastOp>(op.getOperation()))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitError("has no general form");
  }
  return success();
}

static bool isOurs(StringRef dialect) {
  return dialect == "nm_sparse" || dialect == "nm_tile";
}

/// Removes what other compilers do not know, and refuses what they need.
static llvm::Error removeOurs(ModuleOp model) {
  std::string left;
  auto removeFrom = [](ArrayRef<NamedAttribute> attributes, auto remove) {
    for (NamedAttribute attribute : attributes)
      if (isOurs(attribute.getName().strref().split('.').first))
        remove(attribute.getName());
  };
  model.walk([&](Operation *op) {
    if (isOurs(op->getName().getDialectNamespace()) && left.empty())
      left = op->getName().getStringRef().str();
    removeFrom(llvm::to_vector(op->getDiscardableAttrs()),
               [&](StringAttr name) { op->removeDiscardableAttr(name); });
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        removeFrom(function.getArgAttrs(i),
                   [&](StringAttr name) { function.removeArgAttr(i, name); });
  });
  if (left.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      "'" + left +
      "' is left in the model, where IREE does not know it: pass weights that "
      "are packed");
}

llvm::Expected<IREEModule>
nm_sparse::writeIREEModule(ModuleOp model, StringRef programs,
                           const nms::Manifest &manifest, StringRef image,
                           const IREEOptions &options) {
  auto split = splitWeights(model, programs, manifest, options);
  if (!split)
    return split.takeError();
  if (llvm::Error error = removeOurs(model))
    return std::move(error);
  if (failed(generalizeElementwise(model)))
    return llvm::createStringError("an operation of linalg has no general "
                                   "form");
  Executable executable(options);
  std::string functions;
  llvm::raw_string_ostream functionsOS(functions);
  if (llvm::Error error =
          writePrograms(functionsOS, manifest, (programs + ".").str(),
                        split->instances, executable))
    return std::move(error);

  IREEModule result;
  llvm::raw_string_ostream os(result.text);
  os << "// Written by nm-compile --emit iree, for IREE " << options.version
     << ".\n\nmodule {\n";
  for (const auto &[global, parameter] : split->parameters) {
    os << llvm::formatv("  util.global private @{0} = "
                        "#flow.parameter.named<\"{1}\"::\"{2}\"> : {3}\n",
                        global, options.scope, parameter.key, parameter.type);
    result.parameters.push_back(parameter);
  }
  executable.write(os, image);
  os << functions;
  for (const auto &[name, global] : split->loads) {
    const std::string &type = split->parameters[global].type;
    os << llvm::formatv("  func.func private @{0}() -> {1} {{\n"
                        "    %0 = util.global.load immutable @{2} : {1}\n"
                        "    return %0 : {1}\n  }\n",
                        name, type, global);
  }
  // Without names that the whole module shares, functions stand alone.
  for (Operation &op : *model.getBody()) {
    op.print(os, OpPrintingFlags().useLocalScope());
    os << "\n";
  }
  os << "}\n";
  return result;
}
