//===- SplitKernels.cpp - kernels apart and together again ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM compiles a module on one thread. So each kernel goes to a module of its
// own, with the globals that it uses, and the PTX of all is put together again:
// it is text, of which only the head and declarations can repeat.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Codegen.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

using Symbols = llvm::SetVector<Operation *>;

/// Adds what `op` uses to `symbols`, and what that uses.
void addUsed(Operation *op, SymbolTable &table, Symbols &symbols) {
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(op);
  if (!uses)
    return;
  for (SymbolTable::SymbolUse use : *uses)
    if (Operation *used =
            table.lookup(use.getSymbolRef().getRootReference().getValue()))
      if (symbols.insert(used))
        addUsed(used, table, symbols);
}

} // namespace

OwningOpRef<ModuleOp> nm_sparse::splitKernels(gpu::GPUModuleOp kernels) {
  SymbolTable table(kernels);
  SmallVector<Symbols> parts;
  Symbols placed;
  for (Operation &op : *kernels.getBody())
    if (op.hasAttr(gpu::GPUDialect::getKernelFuncAttrName())) {
      Symbols &part = parts.emplace_back();
      part.insert(&op);
      addUsed(&op, table, part);
      placed.insert_range(part);
    }
  if (parts.empty())
    parts.emplace_back();
  // Globals that only the host looks up.
  for (Operation &op : *kernels.getBody())
    if (!placed.contains(&op))
      parts.front().insert(&op);

  OpBuilder b(kernels.getContext());
  OwningOpRef<ModuleOp> all = ModuleOp::create(b, kernels.getLoc());
  for (auto [number, part] : llvm::enumerate(parts)) {
    b.setInsertionPointToEnd(all->getBody());
    auto module = cast<gpu::GPUModuleOp>(b.cloneWithoutRegions(*kernels));
    module.setName((kernels.getName() + "_" + Twine(number)).str());
    b.createBlock(&module.getBodyRegion());
    for (Operation &op : *kernels.getBody())
      if (part.contains(&op))
        b.clone(op);
  }
  return all;
}

namespace {

/// The lines of a file of LLVM: its head, declarations, then functions.
struct Text {
  SmallVector<StringRef> head, declarations;
  StringRef functions;

  explicit Text(StringRef text) {
    SmallVector<StringRef> announced;
    while (!text.empty()) {
      auto [line, rest] = text.split('\n');
      if (line.contains(".entry ") || line.contains(".func "))
        break;
      if (line.starts_with("\t// .globl"))
        announced.push_back(line);
      else if (line.starts_with("//") || line.starts_with(".version ") ||
               line.starts_with(".target ") ||
               line.starts_with(".address_size "))
        head.push_back(line);
      else if (!line.empty())
        declarations.push_back(line);
      text = rest;
    }
    functions = text;
  }
};

} // namespace

std::string nm_sparse::joinPTX(ArrayRef<std::string> parts) {
  if (parts.size() == 1)
    return parts.front();
  SmallVector<Text> texts(llvm::map_range(
      parts, [](const std::string &part) { return Text(part); }));
  std::string joined;
  auto add = [&](StringRef line) { joined.append(line).append("\n"); };
  llvm::for_each(texts.front().head, add);
  add("");
  llvm::StringSet<> declared;
  for (const Text &text : texts)
    for (StringRef line : text.declarations)
      if (declared.insert(line).second)
        add(line);
  for (const Text &text : texts)
    joined.append("\n").append(text.functions);
  return joined;
}
