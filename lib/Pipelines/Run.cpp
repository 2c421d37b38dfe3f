//===- Run.cpp - read a module and run pipelines on it --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Pipelines/Run.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Pipelines/ErrorCollector.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Support/InputFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Refuses what MLIR takes and nothing after it can: names that no report or
/// manifest can hold, and sizes of dimensions that are not there.
static LogicalResult checkProgram(ModuleOp module) {
  WalkResult result = module->walk([](Operation *op) -> WalkResult {
    if (auto name =
            op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
        name && !llvm::json::isUTF8(name))
      return op->emitOpError("has a name that is not UTF-8; names in reports "
                             "and manifests are: give it another one");
    auto dim = dyn_cast<ShapedDimOpInterface>(op);
    auto type = dim ? dyn_cast<ShapedType>(dim.getShapedValue().getType())
                    : ShapedType();
    std::optional<int64_t> position =
        dim ? getConstantIntValue(dim.getDimension()) : std::nullopt;
    if (!type || !type.hasRank() || !position ||
        (*position >= 0 && *position < type.getRank()))
      return WalkResult::advance();
    return op->emitOpError("asks for the size of dimension ")
           << *position << " of " << type << ", which has " << type.getRank();
  });
  return failure(result.wasInterrupted());
}

static llvm::Expected<OwningOpRef<ModuleOp>>
parse(MLIRContext &context, std::unique_ptr<llvm::MemoryBuffer> buffer) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ErrorCollector errors(&context);
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(checkProgram(*module)))
    return llvm::createStringError(errors.getFirst());
  return module;
}

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::readModule(MLIRContext &context, StringRef file) {
  auto buffer = readInput(file);
  if (!buffer)
    return buffer.takeError();
  return parse(context, std::move(*buffer));
}

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::parseModule(MLIRContext &context, StringRef text, StringRef name) {
  return parse(context, llvm::MemoryBuffer::getMemBufferCopy(text, name));
}

llvm::Error nm_sparse::runPipeline(ModuleOp module, StringRef what,
                                   function_ref<void(OpPassManager &)> build) {
  PassManager passes(module.getContext());
  build(passes);
  // Once for all passes of a stage, for that takes as long as some of them.
  passes.enableVerifier(false);
  ErrorCollector errors(module.getContext());
  if (succeeded(passes.run(module)) && succeeded(verify(module)))
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("{0} failed: {1}", what, errors.getFirst()).str());
}

llvm::Error nm_sparse::runStages(ModuleOp module,
                                 const GPUPipelineOptions &options,
                                 StringRef last) {
  for (const Stage &stage : getStages()) {
    if (llvm::Error error =
            runPipeline(module, ("stage " + stage.name).str(),
                        [&](OpPassManager &pm) { stage.build(pm, options); }))
      return error;
    if (stage.name == last)
      break;
  }
  return llvm::Error::success();
}

llvm::Expected<Attribute> nm_sparse::parseAttributeText(MLIRContext &context,
                                                        StringRef text) {
  ErrorCollector errors(&context);
  if (Attribute attribute = parseAttribute(text, &context))
    return attribute;
  return llvm::createStringError(errors.getFirst());
}

llvm::Expected<SmallVector<int64_t>>
nm_sparse::parseTokenCounts(StringRef text) {
  SmallVector<int64_t> counts;
  SmallVector<StringRef> numbers;
  if (text != "auto")
    text.split(numbers, ',');
  for (StringRef number : numbers) {
    int64_t count;
    // 2^24 tokens are more than any index computation is tested for.
    if (number.getAsInteger(10, count) || count < 1 || count > (1 << 24))
      return llvm::createStringError(
          "'" + number.str() +
          "' is not a number of tokens; legal are auto, or numbers from 1 to "
          "16777216 with commas between them");
    counts.push_back(count);
  }
  return counts;
}
