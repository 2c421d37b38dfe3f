//===- IndexCode.cpp - expressions of a manifest as MLIR text -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexCode.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

/// Differences may be negative, so that all are signed.
static llvm::StringRef getOperation(Function function) {
  switch (function) {
  case Function::Add:
    return "arith.addi";
  case Function::Sub:
    return "arith.subi";
  case Function::Mul:
    return "arith.muli";
  case Function::CeilDiv:
    return "arith.ceildivsi";
  case Function::FloorDiv:
    return "arith.divsi";
  case Function::Mod:
    return "arith.remsi";
  case Function::Min:
    return "arith.minsi";
  case Function::Max:
    return "arith.maxsi";
  }
  llvm_unreachable("all functions have an operation");
}

std::string IndexCode::define(const std::string &operation) {
  auto [place, isNew] = known.try_emplace(operation);
  if (isNew) {
    place->second = "%i" + std::to_string(known.size() - 1);
    os << indent << place->second << " = " << operation << "\n";
  }
  return place->second;
}

std::string IndexCode::write(int64_t number) {
  return define("arith.constant " + std::to_string(number) + " : index");
}

std::string IndexCode::write(const Expression &expression) {
  ExpressionWriter writer;
  writer.number = [this](int64_t number) { return write(number); };
  writer.quantity = read;
  writer.call = [this](Function function, const std::string &a,
                       const std::string &b) {
    return define(
        (getOperation(function) + " " + a + ", " + b + " : index").str());
  };
  return expression.write(writer);
}

std::string IndexCode::writeInt32(const Expression &expression) {
  return define("arith.index_cast " + write(expression) + " : index to i32");
}
