//===- InlineBridge.cpp - runs inline PTX as an operation -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineBridge.h"

#include "Ops/OpTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

InlineBridge::InlineBridge(InlineCompiler &compiler,
                           const PtxInstruction &instruction)
    : builder(compiler.getOp()->getContext()), loc(compiler.getOp()->getLoc()),
      compiler(compiler), instruction(instruction) {
  builder.setInsertionPointToEnd(block.get());
  StringRef(instruction.mnemonic).split(parts, '.');
}

Value InlineBridge::miss() {
  if (!isBad)
    fail() << "has only " << size() << " operands";
  isBad = true;
  return block->addArgument(builder.getI32Type(), loc);
}

Value InlineBridge::getValue(unsigned i, Type type) {
  if (i >= size())
    return miss();
  unsigned bits = type.getIntOrFloatBitWidth();
  auto place = compiler.getValue(instruction, instruction.operands[i],
                                 bits == 1 ? 1 : bits / 8);
  if (mlir::failed(place)) {
    isBad = true;
    return block->addArgument(type, loc);
  }
  sources.push_back({*place, std::nullopt});
  return block->addArgument(type, loc);
}

Value InlineBridge::getPointer(unsigned i, AddressSpace space) {
  Type type = LLVM::LLVMPointerType::get(builder.getContext(), unsigned(space));
  if (i >= size())
    return miss();
  auto address = compiler.getAddress(instruction, instruction.operands[i]);
  if (mlir::failed(address))
    isBad = true;
  else
    sources.push_back({0, InlineAddress(*address)});
  return block->addArgument(type, loc);
}

int64_t InlineBridge::getNumber(unsigned i) {
  if (i < size() && instruction.operands[i].kind == PtxOperand::Kind::Immediate)
    return instruction.operands[i].value;
  isBad = true;
  fail() << "wants a number as operand " << i;
  return 0;
}

void InlineBridge::setResult(const PtxOperand &operand, unsigned offset,
                             unsigned bytes) {
  auto place = compiler.getValue(instruction, operand, bytes);
  if (mlir::failed(place))
    isBad = true;
  else
    results.push_back({*place, offset, bytes});
}

FailureOr<Step> InlineBridge::finish(Operation *operation) {
  if (isBad)
    return failure();
  const OpEntry *entry = findOpEntry(operation->getName().getStringRef());
  if (!entry)
    return fail() << "is not emulated: " << operation->getName() << " is not";
  FailureOr<Handler> handler = entry->prepare(operation);
  if (mlir::failed(handler))
    return failure();
  SmallVector<unsigned> order;
  for (Value operand : operation->getOperands())
    order.push_back(cast<BlockArgument>(operand).getArgNumber());
  return Step([owner = block, handler = std::move(*handler), order,
               sources = sources,
               results = results](Thread &thread, Frame frame) {
    SmallVector<uint64_t, 8> addresses(sources.size());
    SmallVector<void *, 8> operands;
    for (unsigned i : order) {
      operands.push_back(frame[sources[i].place]);
      if (sources[i].address) {
        addresses[i] = (*sources[i].address)(frame);
        operands.back() = &addresses[i];
      }
    }
    uint64_t values[4] = {};
    void *result = values;
    handler(thread, operands.data(), &result);
    for (const Result &part : results)
      std::memcpy(frame[part.place],
                  reinterpret_cast<char *>(values) + part.offset, part.bytes);
  });
}
