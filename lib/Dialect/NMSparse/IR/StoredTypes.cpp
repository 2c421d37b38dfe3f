//===- StoredTypes.cpp - element types that a weight can have -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/StoredTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static SmallVector<Type> getStoredTypes(MLIRContext *context) {
  return {Float32Type::get(context),    Float16Type::get(context),
          BFloat16Type::get(context),   Float8E4M3FNType::get(context),
          Float8E5M2Type::get(context), IntegerType::get(context, 8)};
}

bool nm_sparse::isStoredType(Type elementType) {
  return llvm::is_contained(getStoredTypes(elementType.getContext()),
                            elementType);
}

Type nm_sparse::getAccumulatorType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  if (isa<IntegerType>(elementType))
    return IntegerType::get(context, 32);
  return Float32Type::get(context);
}

std::string nm_sparse::listStoredTypes(MLIRContext *context) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(getStoredTypes(context), stream);
  return text;
}
