//===- RegistersOfA.cpp - who writes what wgmma reads ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/RegistersOfA.h"

#include "Ops/Inline/InlineCompiler.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/CallInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

/// The structure that still holds what `extract` takes, or the value that was
/// put there; null where that is a part of it.
static Value lookThrough(LLVM::ExtractValueOp extract) {
  ArrayRef<int64_t> wanted = extract.getPosition();
  Value container = extract.getContainer();
  while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
    ArrayRef<int64_t> position = insert.getPosition();
    if (position == wanted)
      return insert.getValue();
    size_t common = std::min(position.size(), wanted.size());
    if (position.take_front(common) == wanted.take_front(common))
      return nullptr;
    container = insert.getContainer();
  }
  return container;
}

/// Returns true if `op` executes instructions of warpgroups; what else it does
/// in which order is not known here.
static bool isWarpgroupPtx(Operation *op) {
  if (auto inlined = dyn_cast<NVVM::InlinePtxOp>(op))
    return inlined.getPtxCode().contains("wgmma.");
  if (auto inlined = dyn_cast<LLVM::InlineAsmOp>(op))
    return inlined.getAsmString().contains("wgmma.");
  return isa<NVVM::WgmmaMmaAsyncOp>(op);
}

/// A vector in several registers, of which each element stays where it is.
static bool isWideVector(Operation *op) {
  if (!isa<LLVM::InsertElementOp, LLVM::ShuffleVectorOp>(op))
    return false;
  auto type = cast<VectorType>(op->getResult(0).getType());
  return type.getNumElements() * type.getElementTypeBitWidth() > 32;
}

/// The operation that writes the register of `value`, null for none that is
/// followed.
static Operation *findWriter(Value value) {
  while (value) {
    Operation *op = value.getDefiningOp();
    if (!op || isWarpgroupPtx(op) || isWideVector(op) ||
        isa<CallOpInterface, LLVM::InsertValueOp, LLVM::ConstantOp,
            LLVM::ZeroOp, LLVM::UndefOp, LLVM::PoisonOp>(op))
      return nullptr;
    if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op))
      value = lookThrough(extract);
    else if (isa<LLVM::BitcastOp, LLVM::FreezeOp, LLVM::ExtractElementOp>(op))
      value = op->getOperand(0);
    else
      return op;
  }
  return nullptr;
}

RegistersOfA nm_sparse::emulator::findRegistersOfA(LLVM::LLVMFuncOp function) {
  RegistersOfA registers;
  function.walk([&](Operation *op) {
    for (Value value : getRegistersOfA(op))
      if (Operation *writer = findWriter(value)) {
        registers.readers[writer].insert(op);
        registers.writers[op].insert(writer);
      }
  });
  return registers;
}
