//===- Functions.cpp - instructions that only compute ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Functions.h"
#include "Ops/OpTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

struct Index {
  llvm::StringMap<const Function *> byPtx, byIntrinsic;
  SmallVector<StringRef, 0> intrinsics;

  Index() {
    for (ArrayRef<Function> table :
         {getMathFunctions(), getPackedFunctions(), getConversionFunctions(),
          getBitFunctions()})
      for (const Function &function : table) {
        [[maybe_unused]] bool isNew =
            byPtx.try_emplace(function.ptx, &function).second;
        assert(isNew && "an instruction is in two tables");
        if (!function.intrinsic.empty() &&
            byIntrinsic.try_emplace(function.intrinsic, &function).second)
          intrinsics.push_back(function.intrinsic);
      }
  }
};

const Index &getIndex() {
  static const Index index;
  return index;
}

/// Bytes of a scalar or of a vector of scalars, 0 of others.
unsigned getBytes(Type type) {
  unsigned count = 1;
  if (auto vector = dyn_cast<VectorType>(type)) {
    count = vector.getNumElements();
    type = vector.getElementType();
  }
  return type.isIntOrFloat() ? (type.getIntOrFloatBitWidth() * count + 7) / 8
                             : 0;
}

FailureOr<Handler> prepareIntrinsic(Operation *op) {
  StringRef name = cast<LLVM::CallIntrinsicOp>(op).getIntrin();
  const Function *function = findFunctionOfIntrinsic(name);
  auto hasBytes = [](Type type, unsigned bytes) {
    return getBytes(type) == bytes;
  };
  ArrayRef<uint8_t> bytes = function->operandBytes;
  // A selector that is part of the operation (an immediate) comes as a
  // constant operand.
  if (op->getNumOperands() != bytes.size() || op->getNumResults() != 1 ||
      !hasBytes(op->getResult(0).getType(), function->resultBytes) ||
      !llvm::all_of_zip(op->getOperandTypes(), bytes, hasBytes))
    return op->emitError() << name << " is emulated only as PTX's "
                           << function->ptx << ", with " << int(bytes.size())
                           << " operands";
  return Handler(
      [run = function->run](Thread &, Values operands, Values results) {
        run(operands, results[0]);
      });
}

} // namespace

SmallVector<const Function *, 0> emulator::getFunctions() {
  SmallVector<const Function *, 0> functions;
  for (const auto &entry : getIndex().byPtx)
    functions.push_back(entry.second);
  return functions;
}

const Function *emulator::findFunction(StringRef ptx) {
  return getIndex().byPtx.lookup(ptx);
}

const Function *emulator::findFunctionOfIntrinsic(StringRef intrinsic) {
  const auto &map = getIndex().byIntrinsic;
  if (const Function *function = map.lookup(intrinsic))
    return function;
  // An overloaded intrinsic may be named with or without its types.
  return map.lookup(intrinsic.rsplit('.').first);
}

ArrayRef<OpEntry> emulator::getIntrinsicOps() {
  static const SmallVector<OpEntry, 0> entries = [] {
    SmallVector<OpEntry, 0> list;
    for (StringRef name : getIndex().intrinsics)
      list.push_back({name, prepareIntrinsic});
    return list;
  }();
  return entries;
}
