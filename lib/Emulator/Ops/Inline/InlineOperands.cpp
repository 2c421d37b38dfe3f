//===- InlineOperands.cpp - names of inline PTX to places -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resolves the names in a text: operands and results of the operation, as
// nvvm.inline_ptx and llvm.inline_asm number them, and declared registers.
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineCompiler.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

/// Bytes of a value in the host's layout, 0 of what no register holds.
static unsigned getRegisterBytes(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  unsigned count = 1;
  if (auto vector = dyn_cast<VectorType>(type)) {
    count = vector.getNumElements();
    type = vector.getElementType();
  }
  if (!type.isIntOrFloat())
    return 0;
  return llvm::divideCeil(type.getIntOrFloatBitWidth() * count, 8);
}

void InlineCompiler::addPlace(StringRef name, Place place) {
  names[name] = program->places.size();
  program->places.push_back(place);
}

/// Numbers as the lowering to LLVM does: what is written, then what is read.
LogicalResult InlineCompiler::bindInlinePtx() {
  auto ptx = cast<NVVM::InlinePtxOp>(op);
  if (!ptx.getReadWriteArgs().empty())
    return op->emitError("inline PTX with rw operands is not emulated: make "
                         "each a result of llvm.inline_asm that is tied to an "
                         "operand");
  unsigned number = 0;
  auto add = [&](const char *kind, unsigned i, Place place) {
    addPlace(("$" + Twine(kind) + Twine(i)).str(), place);
    names["$" + std::to_string(number++)] = program->places.size() - 1;
  };
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    add("w", i,
        {Place::Result, getRegisterBytes(result.getType()), unsigned(i)});
  for (auto [i, value] : llvm::enumerate(ptx.getReadOnlyArgs()))
    add("r", i,
        {Place::Operand, getRegisterBytes(value.getType()), unsigned(i)});
  if (ptx.getPredicate()) {
    addPlace("$predicate", {Place::Operand, 1, op->getNumOperands() - 1});
    predicate = program->places.size() - 1;
  }
  return success();
}

/// Numbers by the constraints: outputs, which start with '=', then inputs, of
/// which those that are numbers start in an output.
LogicalResult InlineCompiler::bindInlineAsm() {
  auto assembly = cast<LLVM::InlineAsmOp>(op);
  SmallVector<StringRef> constraints;
  assembly.getConstraints().split(constraints, ',', -1, false);
  SmallVector<Type> outputs;
  if (op->getNumResults() == 1) {
    if (auto fields =
            dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType()))
      llvm::append_range(outputs, fields.getBody());
    else
      outputs.push_back(op->getResult(0).getType());
  }
  unsigned output = 0, input = 0, number = 0, offset = 0;
  for (StringRef constraint : constraints) {
    if (constraint.starts_with("~"))
      continue;
    std::string name = "$" + std::to_string(number++);
    if (constraint.starts_with("=")) {
      if (output == outputs.size())
        return op->emitError("inline assembly has more outputs than results");
      unsigned bytes = getRegisterBytes(outputs[output++]);
      offset = llvm::alignTo(offset, std::max(bytes, 1u));
      addPlace(name, {Place::Result, bytes, 0, offset});
      offset += bytes;
      continue;
    }
    if (input == op->getNumOperands())
      return op->emitError("inline assembly has more inputs than operands");
    unsigned bytes = getRegisterBytes(op->getOperand(input).getType());
    unsigned tied = 0;
    if (constraint.getAsInteger(10, tied)) {
      addPlace(name, {Place::Operand, bytes, input++});
      continue;
    }
    if (tied >= output)
      return op->emitError()
             << "inline assembly program->ties an input to output " << tied
             << " of " << output;
    names[name] = tied;
    program->ties.push_back({input++, tied, bytes});
  }
  return success();
}

LogicalResult InlineCompiler::bind() {
  return isa<NVVM::InlinePtxOp>(op) ? bindInlinePtx() : bindInlineAsm();
}

SmallVector<Value> InlineCompiler::findRegistersOfA() {
  SmallVector<Value> values;
  llvm::Expected<PtxText> text = parsePtx(getText());
  if (!text) {
    llvm::consumeError(text.takeError());
    return values;
  }
  // run() reports what is wrong.
  ScopedDiagnosticHandler ignore(op->getContext(), [](Diagnostic &) {});
  if (failed(bind()))
    return values;
  for (const PtxInstruction &instruction : text->instructions) {
    if (!StringRef(instruction.mnemonic).starts_with("wgmma.mma_async.") ||
        instruction.operands.size() < 2)
      continue;
    // A list for A; a descriptor is one register.
    for (const PtxOperand &element : instruction.operands[1].elements) {
      auto found = names.find(element.name);
      if (found == names.end())
        continue;
      const Place &place = program->places[found->second];
      if (place.kind == Place::Operand)
        values.push_back(op->getOperand(place.index));
    }
  }
  return values;
}

SmallVector<Value> emulator::getRegistersOfA(Operation *op) {
  bool isInline = isa<NVVM::InlinePtxOp, LLVM::InlineAsmOp>(op);
  return isInline ? InlineCompiler(op).findRegistersOfA()
                  : SmallVector<Value>();
}

LogicalResult InlineCompiler::addRegister(const PtxText::Register &declared) {
  StringRef type = declared.type;
  unsigned bits = 0;
  if (type == "pred")
    bits = 8;
  else if (type == "f16x2" || type == "bf16x2")
    bits = 32;
  else if (type.ltrim("busf").getAsInteger(10, bits) || bits > 64)
    return op->emitError() << "inline PTX declares a register of type ." << type
                           << ": emulated are pred and types of 8 to 64 bits";
  addPlace(declared.name, {Place::Local, bits / 8, program->numLocals++});
  return success();
}
