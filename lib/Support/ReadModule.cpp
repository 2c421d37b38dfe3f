//===- ReadModule.cpp - MLIR from a file or from memory -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Support/ReadModule.h"

#include "mlir/Parser/Parser.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Support/InputFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static llvm::Expected<OwningOpRef<ModuleOp>>
parse(MLIRContext &context, std::unique_ptr<llvm::MemoryBuffer> buffer) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ErrorCollector errors(&context);
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
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
