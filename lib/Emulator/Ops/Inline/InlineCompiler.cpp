//===- InlineCompiler.cpp - inline PTX to steps ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineCompiler.h"

#include "Ops/OpTable.h"
#include "Ops/Scalar/Functions.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

InFlightDiagnostic
InlineCompiler::fail(const PtxInstruction &instruction) const {
  return op->emitError() << "inline PTX '" << instruction.mnemonic << "' ";
}

FailureOr<unsigned> InlineCompiler::getValue(const PtxInstruction &instruction,
                                             const PtxOperand &operand,
                                             unsigned bytes) {
  if (operand.kind == PtxOperand::Kind::Immediate) {
    program->constants.push_back(operand.value);
    program->places.push_back(
        {Place::Constant, 8, unsigned(program->constants.size() - 1)});
    return program->places.size() - 1;
  }
  if (operand.kind != PtxOperand::Kind::Name)
    return fail(instruction) << "has an address or a list where a register or "
                                "a number is emulated";
  if (operand.name == "_") {
    program->places.push_back({Place::Discarded, bytes ? bytes : 8});
    return program->places.size() - 1;
  }
  auto found = names.find(operand.name);
  if (found == names.end())
    if (ReadRegister read = findRegister(operand.name)) {
      program->places.push_back(
          {Place::Local, bytes ? bytes : 8, program->numLocals++});
      program->specials.emplace_back(program->places.size() - 1, read);
      return program->places.size() - 1;
    }
  if (found == names.end())
    return fail(instruction) << "uses '" << operand.name
                             << "', which is no operand, declared register or "
                                "special register that is emulated";
  unsigned actual = program->places[found->second].bytes;
  if (bytes && actual != bytes)
    return fail(instruction)
           << "wants " << bytes * 8 << " bits, but " << operand.name << " has "
           << actual * 8 << ": pass a value of that width";
  return found->second;
}

FailureOr<InlineAddress>
InlineCompiler::getAddress(const PtxInstruction &instruction,
                           const PtxOperand &operand) {
  InlineAddress address;
  if (operand.kind != PtxOperand::Kind::Address)
    return fail(instruction) << "wants an address in brackets";
  address.offset = operand.value;
  if (operand.name.empty())
    return address;
  PtxOperand base;
  base.name = operand.name;
  FailureOr<unsigned> place = getValue(instruction, base);
  if (failed(place))
    return failure();
  address.place = *place;
  address.bytes = getBytes(*place);
  if (address.bytes != 4 && address.bytes != 8)
    return fail(instruction) << "has an address of " << address.bytes * 8
                             << " bits: legal are 32 and 64";
  return address;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// An instruction that only computes.
static FailureOr<Step> compileFunction(InlineCompiler &compiler,
                                       const PtxInstruction &instruction,
                                       const Function &function) {
  if (instruction.operands.size() != function.operandBytes.size() + 1)
    return compiler.fail(instruction)
           << "has " << instruction.operands.size() << " operands, not "
           << function.operandBytes.size() + 1;
  FailureOr<unsigned> result = compiler.getValue(
      instruction, instruction.operands[0], function.resultBytes);
  if (failed(result))
    return failure();
  SmallVector<unsigned, 4> operands;
  for (auto [operand, bytes] :
       llvm::zip(ArrayRef(instruction.operands).drop_front(),
                 function.operandBytes)) {
    FailureOr<unsigned> place = compiler.getValue(instruction, operand, bytes);
    if (failed(place))
      return failure();
    operands.push_back(*place);
  }
  return Step(
      [run = function.run, operands, result = *result](Thread &, Frame frame) {
        SmallVector<void *, 4> values;
        for (unsigned place : operands)
          values.push_back(frame[place]);
        run(values.data(), frame[result]);
      });
}

static SmallVector<ArrayRef<InlineForm>> getTables() {
  return {getInlineMoves(), getInlineMemory(), getInlineAsync(),
          getInlineBridges(), getInlineProducts()};
}

std::map<std::string, std::vector<std::string>> emulator::listInlinePtx() {
  std::map<std::string, std::vector<std::string>> known;
  auto add = [&](StringRef family, StringRef form) {
    known[family.split('.').first.str()].push_back(form.str());
  };
  for (const Function *function : getFunctions())
    add(function->ptx, function->ptx);
  for (ArrayRef<InlineForm> table : getTables())
    for (const InlineForm &form : table)
      add(form.family, form.forms);
  add("bra", "bra");
  for (auto &[family, forms] : known)
    llvm::sort(forms);
  return known;
}

/// Lists the emulated instructions that begin like `mnemonic`, or, if there are
/// none, all of them by their first word.
static std::string listKnown(StringRef mnemonic) {
  auto known = listInlinePtx();
  auto similar = known.find(mnemonic.split('.').first.str());
  if (similar != known.end())
    return "known are " + llvm::join(similar->second, ", ");
  return "known are " + llvm::join(llvm::make_first_range(known), ", ");
}

FailureOr<Step> InlineCompiler::compile(const PtxInstruction &instruction) {
  StringRef mnemonic = instruction.mnemonic;
  if (const Function *function = findFunction(mnemonic))
    return compileFunction(*this, instruction, *function);
  // The longest family that fits: cp.async.bulk before cp.async.
  const InlineForm *best = nullptr;
  for (ArrayRef<InlineForm> table : getTables())
    for (const InlineForm &form : table)
      if ((mnemonic == form.family ||
           mnemonic.starts_with((form.family + ".").str())) &&
          (!best || best->family.size() < form.family.size()))
        best = &form;
  if (best)
    return best->compile(*this, instruction);
  return fail(instruction) << "is not emulated; " << listKnown(mnemonic);
}

StringRef InlineCompiler::getText() const {
  if (auto ptx = dyn_cast<NVVM::InlinePtxOp>(op))
    return ptx.getPtxCode();
  return cast<LLVM::InlineAsmOp>(op).getAsmString();
}

FailureOr<Handler> InlineCompiler::run() {
  llvm::Expected<PtxText> text = parsePtx(getText());
  if (!text)
    return op->emitError("inline PTX cannot be read: ")
           << llvm::toString(text.takeError());
  if (failed(bind()))
    return failure();
  for (const PtxText::Register &declared : text->registers)
    if (failed(addRegister(declared)))
      return failure();
  if (predicate && text->instructions.size() != 1)
    return op->emitError("inline PTX has a predicate and ")
           << text->instructions.size()
           << " instructions: only the first would be predicated";

  for (const PtxInstruction &instruction : text->instructions) {
    InlineProgram::Instruction compiled;
    compiled.guard = predicate;
    if (!instruction.guard.empty()) {
      PtxOperand guard;
      guard.name = instruction.guard;
      FailureOr<unsigned> place = getValue(instruction, guard, 1);
      if (failed(place))
        return failure();
      compiled.guard.emplace(*place);
      compiled.isGuardNegated = instruction.isGuardNegated;
    }
    StringRef mnemonic = instruction.mnemonic;
    if (mnemonic == "bra" || mnemonic == "bra.uni") {
      auto label = text->labels.end();
      if (instruction.operands.size() == 1)
        label = text->labels.find(instruction.operands[0].name);
      if (label == text->labels.end())
        return fail(instruction) << "wants one label of this text";
      compiled.target = label->second;
    } else {
      FailureOr<Step> step = compile(instruction);
      if (failed(step))
        return failure();
      compiled.step = std::move(*step);
    }
    program->instructions.push_back(std::move(compiled));
  }
  return Handler(
      [program = program](Thread &thread, Values operands, Values results) {
        program->run(thread, operands, results);
      });
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static FailureOr<Handler> prepareInline(Operation *op) {
  return InlineCompiler(op).run();
}

ArrayRef<OpEntry> emulator::getInlineOps() {
  static const OpEntry entries[] = {
      {"nvvm.inline_ptx", prepareInline},
      {"llvm.inline_asm", prepareInline},
  };
  return entries;
}
