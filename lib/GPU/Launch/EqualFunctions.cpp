//===- EqualFunctions.cpp - each layer is compiled once -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model has hundreds of layers of a few kinds, each a function. Those that
// differ in their names alone become one before the first pass. When its
// kernels are there the others come back as copies of its host code, which
// launch them.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/EqualCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/GPU/Copies.h"
#include "nm_sparse/GPU/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEFOLDFUNCTIONSPASS
#define GEN_PASS_DEF_NMSPARSERESTOREFUNCTIONSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Names of a copy, and of the function before it in the module.
static constexpr llvm::StringLiteral kName = "name", kAfter = "after";

SmallVector<StringRef> nm_sparse::getCopies(func::FuncOp function) {
  SmallVector<StringRef> names;
  if (auto copies = function->getAttrOfType<ArrayAttr>(kCopiesAttrName))
    for (auto copy : copies.getAsRange<DictionaryAttr>())
      names.push_back(cast<StringAttr>(copy.get(kName)).getValue());
  return names;
}

namespace {

struct FoldFunctions
    : public nm_sparse::impl::NMSparseFoldFunctionsPassBase<FoldFunctions> {
  void runOnOperation() override {
    SymbolTableCollection tables;
    SymbolUserMap users(tables, getOperation());
    Builder b(&getContext());
    EqualFunctions<func::FuncOp> known;
    llvm::MapVector<Operation *, SmallVector<Attribute>> copies;
    SmallVector<func::FuncOp> folded;
    StringAttr previous;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      StringAttr after = std::exchange(previous, function.getSymNameAttr());
      // A caller would have to change with what it calls.
      if (function.isExternal() || !users.useEmpty(function))
        continue;
      func::FuncOp first = known.findOrAdd(function);
      if (first == function)
        continue;
      copies[first].push_back(
          b.getDictionaryAttr({b.getNamedAttr(kName, function.getSymNameAttr()),
                               b.getNamedAttr(kAfter, after)}));
      folded.push_back(function);
    }
    for (auto &[first, list] : copies)
      first->setAttr(kCopiesAttrName, b.getArrayAttr(list));
    for (func::FuncOp function : folded)
      function.erase();
  }
};

struct RestoreFunctions
    : public nm_sparse::impl::NMSparseRestoreFunctionsPassBase<
          RestoreFunctions> {
  void runOnOperation() override {
    struct Copy {
      func::FuncOp of;
      StringAttr name;
    };
    llvm::DenseMap<Attribute, Copy> copyAfter;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto copies = dyn_cast_or_null<ArrayAttr>(
              function->removeAttr(kCopiesAttrName)))
        for (auto copy : copies.getAsRange<DictionaryAttr>())
          copyAfter[copy.get(kAfter)] = {function,
                                         cast<StringAttr>(copy.get(kName))};
    OpBuilder b(&getContext());
    // Also those that are inserted here.
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto found = copyAfter.find(function.getSymNameAttr());
      if (found == copyAfter.end())
        continue;
      b.setInsertionPointAfter(function);
      auto copy = cast<func::FuncOp>(b.clone(*found->second.of));
      copy.setSymNameAttr(found->second.name);
    }
  }
};

} // namespace
