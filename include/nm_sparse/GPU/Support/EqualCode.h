//===- EqualCode.h - functions that differ in their names alone -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_EQUALCODE_H
#define NM_SPARSE_GPU_SUPPORT_EQUALCODE_H

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/Hashing.h"

namespace mlir::nm_sparse {

/// Finds functions that are equal but for their names and locations.
template <typename FunctionOp>
class EqualFunctions {
public:
  /// Returns an equal function that was passed before; otherwise records and
  /// returns `function` itself.
  FunctionOp findOrAdd(FunctionOp function) {
    SmallVector<FunctionOp> &alike = byHash[hash(function)];
    for (FunctionOp other : alike)
      if (areEqual(other, function))
        return other;
    alike.push_back(function);
    return function;
  }

private:
  static constexpr auto kFlags = OperationEquivalence::IgnoreLocations;

  static llvm::hash_code hash(FunctionOp function) {
    llvm::hash_code code =
        llvm::hash_value(function.getFunctionType().getAsOpaquePointer());
    function.getBody().walk([&](Operation *op) {
      code = llvm::hash_combine(
          code, OperationEquivalence::computeHash(
                    op, OperationEquivalence::ignoreHashValue,
                    OperationEquivalence::ignoreHashValue, kFlags));
    });
    return code;
  }

  static bool areEqual(FunctionOp a, FunctionOp b) {
    auto getAttributes = [](FunctionOp function) {
      NamedAttrList attributes(function->getAttrDictionary());
      attributes.erase(SymbolTable::getSymbolAttrName());
      return attributes.getDictionary(function.getContext());
    };
    return getAttributes(a) == getAttributes(b) &&
           OperationEquivalence::isRegionEquivalentTo(&a.getBody(),
                                                      &b.getBody(), kFlags);
  }

  llvm::DenseMap<size_t, SmallVector<FunctionOp>> byHash;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_EQUALCODE_H
