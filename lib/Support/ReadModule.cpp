//===- ReadModule.cpp - MLIR from a file or from memory -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Support/ReadModule.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Support/InputFile.h"
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

/// The name that stands at `place` of a text of `lines`, without its '%'; empty
/// where there is none.
static StringRef findName(ArrayRef<StringRef> lines, FileLineColLoc place) {
  if (place.getLine() == 0 || place.getLine() > lines.size())
    return {};
  StringRef text = lines[place.getLine() - 1];
  text = text.drop_front(std::min<size_t>(place.getColumn() - 1, text.size()));
  if (!text.consume_front("%"))
    return {};
  return text.take_while(
      [](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); });
}

/// Keeps the names of arguments in their locations: the IR itself has none.
static void nameArguments(ModuleOp module, StringRef text, StringRef file) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  module.walk([&](FunctionOpInterface function) {
    for (BlockArgument argument : function.getArguments()) {
      auto place = dyn_cast<FileLineColLoc>(argument.getLoc());
      // Text may say any place, also one in another file.
      if (!place || place.getFilename() != file)
        continue;
      StringRef name = findName(lines, place);
      if (!name.empty())
        argument.setLoc(
            NameLoc::get(StringAttr::get(module.getContext(), name), place));
    }
  });
}

static llvm::Expected<OwningOpRef<ModuleOp>>
parse(MLIRContext &context, std::unique_ptr<llvm::MemoryBuffer> buffer) {
  llvm::MemoryBufferRef text = *buffer;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ErrorCollector errors(&context);
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(checkProgram(*module)))
    return llvm::createStringError(errors.getFirst());
  if (!isBytecode(text))
    nameArguments(*module, text.getBuffer(), text.getBufferIdentifier());
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
