//===- HostNames.cpp - names of compiled host functions -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/HostNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::nameForHost(ModuleOp module, StringRef entry) {
  DenseMap<StringAttr, StringAttr> names;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!isa<memref::GlobalOp>(op) && (!function || function.isExternal()))
      continue;
    StringAttr old = SymbolTable::getSymbolName(&op);
    std::string name = old == entry
                           ? kHostEntry.str()
                           : llvm::formatv("nm_run_{0}", names.size()).str();
    names[old] = StringAttr::get(module.getContext(), name);
  }
  for (Operation &op : *module.getBody())
    if (isa<func::FuncOp, memref::GlobalOp>(op))
      if (StringAttr name = names.lookup(SymbolTable::getSymbolName(&op)))
        SymbolTable::setSymbolName(&op, name);
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](FlatSymbolRefAttr symbol) -> std::optional<Attribute> {
        if (StringAttr name = names.lookup(symbol.getAttr()))
          return FlatSymbolRefAttr::get(name);
        return std::nullopt;
      });
  replacer.recursivelyReplaceElementsIn(module);
}
