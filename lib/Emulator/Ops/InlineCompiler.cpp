//===- InlineCompiler.cpp - inline PTX to steps ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlineCompiler.h"

#include "../Machine.h"
#include "../OpTable.h"
#include "Functions.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

/// What one execution needs.
struct InlineCompiler::Program {
  struct Instruction {
    Step step; ///< Null for a branch.
    std::optional<unsigned> guard;
    bool isGuardNegated = false;
    size_t target = 0; ///< Of a branch.
  };
  std::vector<Place> places;
  std::vector<Tie> ties;
  std::vector<uint64_t> constants;
  std::vector<std::pair<unsigned, ReadRegister>> specials;
  std::vector<Instruction> instructions;
  unsigned numLocals = 0;

  void run(Thread &thread, Values operands, Values results) const;
};

void InlineCompiler::Program::run(Thread &thread, Values operands,
                                  Values results) const {
  SmallVector<uint64_t, 16> locals(numLocals + 1);
  SmallVector<void *, 32> frame;
  for (const Place &place : places)
    switch (place.kind) {
    case Place::Operand:
      frame.push_back(operands[place.index]);
      break;
    case Place::Result:
      frame.push_back(static_cast<char *>(results[place.index]) +
                      place.fieldOffset);
      break;
    case Place::Local:
      frame.push_back(&locals[place.index]);
      break;
    case Place::Constant:
      frame.push_back(const_cast<uint64_t *>(&constants[place.index]));
      break;
    case Place::Discarded:
      frame.push_back(&locals[numLocals]);
      break;
    }
  for (const Tie &tie : ties)
    std::memcpy(frame[tie.place], operands[tie.operand], tie.bytes);
  for (auto [place, read] : specials) {
    uint64_t value = read(thread);
    std::memcpy(frame[place], &value, places[place].bytes);
  }
  for (size_t next = 0; next < instructions.size();) {
    const Instruction &instruction = instructions[next++];
    if (instruction.guard) {
      bool isSet = *static_cast<uint8_t *>(frame[*instruction.guard]) & 1;
      if (isSet == instruction.isGuardNegated)
        continue;
    }
    if (instruction.step) {
      instruction.step(thread, frame.data());
      continue;
    }
    if (instruction.target < next)
      thread.yield([] { return std::string("it repeats inline PTX"); },
                   /*isGlobal=*/true);
    next = instruction.target;
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

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
  names[name] = places.size();
  places.push_back(place);
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
    names["$" + std::to_string(number++)] = places.size() - 1;
  };
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    add("w", i,
        {Place::Result, getRegisterBytes(result.getType()), unsigned(i)});
  for (auto [i, value] : llvm::enumerate(ptx.getReadOnlyArgs()))
    add("r", i,
        {Place::Operand, getRegisterBytes(value.getType()), unsigned(i)});
  if (ptx.getPredicate()) {
    addPlace("$predicate", {Place::Operand, 1, op->getNumOperands() - 1});
    predicate = places.size() - 1;
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
      return op->emitError() << "inline assembly ties an input to output "
                             << tied << " of " << output;
    names[name] = tied;
    ties.push_back({input++, tied, bytes});
  }
  return success();
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
  addPlace(declared.name, {Place::Local, bits / 8, numLocals++});
  return success();
}

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
    constants.push_back(operand.value);
    places.push_back({Place::Constant, 8, unsigned(constants.size() - 1)});
    return places.size() - 1;
  }
  if (operand.kind != PtxOperand::Kind::Name)
    return fail(instruction) << "has an address or a list where a register or "
                                "a number is emulated";
  if (operand.name == "_") {
    places.push_back({Place::Discarded, bytes ? bytes : 8});
    return places.size() - 1;
  }
  auto found = names.find(operand.name);
  if (found == names.end())
    if (ReadRegister read = findRegister(operand.name)) {
      places.push_back({Place::Local, bytes ? bytes : 8, numLocals++});
      specials.emplace_back(places.size() - 1, read);
      return places.size() - 1;
    }
  if (found == names.end())
    return fail(instruction) << "uses '" << operand.name
                             << "', which is no operand, declared register or "
                                "special register that is emulated";
  unsigned actual = places[found->second].bytes;
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

/// Of the instructions that are emulated those that begin like `mnemonic`,
/// otherwise all by their first word.
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
  if (failed(isa<NVVM::InlinePtxOp>(op) ? bindInlinePtx() : bindInlineAsm()))
    return failure();
  for (const PtxText::Register &declared : text->registers)
    if (failed(addRegister(declared)))
      return failure();
  if (predicate && text->instructions.size() != 1)
    return op->emitError("inline PTX has a predicate and ")
           << text->instructions.size()
           << " instructions: only the first would be predicated";

  auto program = std::make_shared<Program>();
  for (const PtxInstruction &instruction : text->instructions) {
    Program::Instruction compiled;
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
  program->specials = std::move(specials);
  program->places = std::move(places);
  program->ties = std::move(ties);
  program->constants = std::move(constants);
  program->numLocals = numLocals;
  return Handler([program](Thread &thread, Values operands, Values results) {
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
