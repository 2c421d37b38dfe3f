//===- InlineMemory.cpp - ld, st, atom and red in inline PTX --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/BankConflicts.h"
#include "Machine/GlobalOrder.h"
#include "Ops/Inline/InlineCompiler.h"
#include "Ops/Memory/AtomicUpdate.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

/// The meaning of the parts of a mnemonic.
struct MemoryForm {
  AddressSpace space = AddressSpace::Generic;
  /// May wait for another thread: volatile, relaxed, acquire, ...
  bool isStrong = false;
  bool acquires = false, releases = false;
  bool isGPU = false;     ///< The scope reaches other clusters.
  bool hasPolicy = false; ///< The last operand is a cache policy.
  unsigned elements = 1;
  StringRef type;   ///< "b32"
  StringRef update; ///< "add"
  unsigned elementBytes = 0;

  unsigned getBytes() const { return elements * elementBytes; }
};

/// Reads `mnemonic` without its first word; a message when a part is unknown.
std::optional<std::string> readForm(StringRef mnemonic, MemoryForm &form) {
  SmallVector<StringRef> parts;
  mnemonic.split(parts, '.');
  for (StringRef part : ArrayRef(parts).drop_front()) {
    if (part == "global")
      form.space = AddressSpace::Global;
    else if (part == "shared" || part == "shared::cta")
      form.space = AddressSpace::Shared;
    else if (part == "shared::cluster")
      form.space = AddressSpace::SharedCluster;
    else if (part == "volatile" || part == "relaxed")
      form.isStrong = true;
    else if (part == "acquire")
      form.isStrong = form.acquires = true;
    else if (part == "release")
      form.isStrong = form.releases = true;
    else if (part == "acq_rel")
      form.isStrong = form.acquires = form.releases = true;
    else if (part == "gpu" || part == "sys")
      form.isGPU = true;
    else if (part == "L2::cache_hint")
      form.hasPolicy = true;
    else if (part == "v2" || part == "v4" || part == "v8")
      part.drop_front().getAsInteger(10, form.elements);
    else if (isAtomicUpdate(part))
      form.update = part;
    else if (unsigned bytes = getAtomicTypeBytes(part)) {
      form.type = part;
      form.elementBytes = bytes;
    } else if (part != "weak" && part != "cta" && part != "cluster" &&
               part != "nc" && part != "noftz" && part != "ca" &&
               part != "cg" && part != "cs" && part != "lu" && part != "cv" &&
               part != "wb" && part != "wt" && !part.starts_with("L1::") &&
               !part.starts_with("L2::"))
      return ("is not emulated because of ." + part).str();
  }
  if (form.type.empty())
    return std::string("names no type that is emulated");
  return std::nullopt;
}

/// The places of the elements of a value; a register may be wider than what it
/// is loaded from or stored to.
FailureOr<SmallVector<unsigned>> getElements(InlineCompiler &compiler,
                                             const PtxInstruction &instruction,
                                             const PtxOperand &operand,
                                             const MemoryForm &form) {
  ArrayRef<PtxOperand> elements = operand;
  if (operand.kind == PtxOperand::Kind::Vector)
    elements = operand.elements;
  if (elements.size() != form.elements)
    return compiler.fail(instruction) << "wants " << form.elements
                                      << " registers, not " << elements.size();
  SmallVector<unsigned> places;
  for (const PtxOperand &element : elements) {
    FailureOr<unsigned> place = compiler.getValue(
        instruction, element, form.elementBytes < 4 ? 0 : form.elementBytes);
    if (failed(place))
      return failure();
    if (compiler.getBytes(*place) < form.elementBytes)
      return compiler.fail(instruction) << "wants registers of at least "
                                        << form.elementBytes * 8 << " bits";
    places.push_back(*place);
  }
  return places;
}

/// Fills `form`, and checks the number of operands apart from a policy.
LogicalResult readInstruction(InlineCompiler &compiler,
                              const PtxInstruction &instruction, size_t count,
                              MemoryForm &form) {
  if (std::optional<std::string> wrong = readForm(instruction.mnemonic, form))
    return compiler.fail(instruction) << *wrong;
  if (instruction.operands.size() != count + form.hasPolicy)
    return compiler.fail(instruction)
           << "has " << instruction.operands.size() << " operands, not "
           << count + form.hasPolicy;
  bool isShared = form.space == AddressSpace::Shared ||
                  form.space == AddressSpace::SharedCluster;
  if (isShared && form.getBytes() < 4)
    return compiler.fail(instruction)
           << "accesses " << form.getBytes()
           << " bytes of shared memory: the smallest that is emulated in "
              "inline PTX is 4";
  return success();
}

/// Lets the threads that this one may wait for go on.
void poll(Thread &thread) {
  thread.yield([] { return std::string("it polls memory"); },
               /*isGlobal=*/true);
}

/// Acquire and release are relaxed operations with a fence behind or before.
void fence(Thread &thread, const MemoryForm &form) {
  if (form.isGPU)
    thread.fenceGPU();
}

/// Observes data that another cluster published between the check of a read and
/// the read itself, which `thread` therefore may have seen.
void observe(Thread &thread, uint64_t address, const char *where) {
  bool isGlobal = address == reinterpret_cast<uint64_t>(where);
  if (isGlobal)
    thread.cta.cluster.launch.order->observe(thread, address);
}

FailureOr<Step> compileLoad(InlineCompiler &compiler,
                            const PtxInstruction &instruction) {
  MemoryForm form;
  if (failed(readInstruction(compiler, instruction, 2, form)))
    return failure();
  auto to = getElements(compiler, instruction, instruction.operands[0], form);
  auto address = compiler.getAddress(instruction, instruction.operands[1]);
  if (failed(to) || failed(address))
    return failure();
  SmallVector<unsigned> widths;
  for (unsigned place : *to)
    widths.push_back(compiler.getBytes(place));
  bool isSigned = form.type.starts_with("s");
  return Step([=, to = *to, address = *address](Thread &thread, Frame frame) {
    if (form.isStrong)
      poll(thread);
    unsigned bytes = form.getBytes();
    const char *from = thread.access(address(frame), form.space, bytes, bytes,
                                     form.isStrong ? AccessKind::StrongRead
                                                   : AccessKind::Read);
    countBanks(thread, SharedOp::Load, address(frame), form.space, bytes,
               bytes);
    for (size_t i = 0; i < to.size(); ++i) {
      int64_t value =
          loadAtomically(from + i * form.elementBytes, form.elementBytes);
      if (isSigned) {
        unsigned above = 64 - 8 * form.elementBytes;
        value = int64_t(uint64_t(value) << above) >> above;
      }
      std::memcpy(frame[to[i]], &value, widths[i]);
    }
    if (form.isStrong)
      observe(thread, address(frame), from);
    if (form.acquires)
      fence(thread, form);
  });
}

FailureOr<Step> compileStore(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  MemoryForm form;
  if (failed(readInstruction(compiler, instruction, 2, form)))
    return failure();
  auto address = compiler.getAddress(instruction, instruction.operands[0]);
  auto from = getElements(compiler, instruction, instruction.operands[1], form);
  if (failed(from) || failed(address))
    return failure();
  return Step(
      [=, from = *from, address = *address](Thread &thread, Frame frame) {
        if (form.releases)
          fence(thread, form);
        unsigned bytes = form.getBytes();
        char *to = thread.access(address(frame), form.space, bytes, bytes,
                                 form.isStrong ? AccessKind::StrongWrite
                                               : AccessKind::Write);
        countBanks(thread, SharedOp::Store, address(frame), form.space, bytes,
                   bytes);
        for (size_t i = 0; i < from.size(); ++i) {
          uint64_t value = 0;
          std::memcpy(&value, frame[from[i]], form.elementBytes);
          storeAtomically(to + i * form.elementBytes, form.elementBytes, value);
        }
      });
}

/// atom, and red without a result.
template <bool hasResult>
FailureOr<Step> compileUpdate(InlineCompiler &compiler,
                              const PtxInstruction &instruction) {
  MemoryForm form;
  bool isSwap = StringRef(instruction.mnemonic).contains(".cas");
  if (failed(
          readInstruction(compiler, instruction, 2 + hasResult + isSwap, form)))
    return failure();
  AtomicUpdate update = findAtomicUpdate(form.update, form.type);
  if (!update)
    return compiler.fail(instruction)
           << "is not emulated: it updates ." << form.type << " by '"
           << form.update << "'";
  SmallVector<unsigned> to;
  if (hasResult) {
    auto places =
        getElements(compiler, instruction, instruction.operands[0], form);
    if (failed(places))
      return failure();
    to = std::move(*places);
  }
  auto address =
      compiler.getAddress(instruction, instruction.operands[hasResult]);
  auto from = getElements(compiler, instruction,
                          instruction.operands[1 + hasResult], form);
  if (failed(address) || failed(from))
    return failure();
  std::optional<unsigned> swap;
  if (isSwap) {
    auto place = compiler.getValue(
        instruction, instruction.operands[2 + hasResult], form.elementBytes);
    if (failed(place))
      return failure();
    swap.emplace(*place);
  }
  return Step(
      [=, from = *from, address = *address](Thread &thread, Frame frame) {
        if (swap)
          poll(thread);
        if (form.releases)
          fence(thread, form);
        unsigned bytes = form.getBytes(), element = form.elementBytes;
        char *where = thread.access(address(frame), form.space, bytes, bytes,
                                    AccessKind::Atomic);
        for (size_t i = 0; i < from.size(); ++i) {
          uint64_t operand = 0, other = 0;
          std::memcpy(&operand, frame[from[i]], element);
          if (swap)
            std::memcpy(&other, frame[*swap], element);
          uint64_t old = updateAtomically(where + i * element, element, update,
                                          operand, other);
          if (hasResult)
            std::memcpy(frame[to[i]], &old, element);
        }
        observe(thread, address(frame), where);
        if (form.acquires)
          fence(thread, form);
      });
}

} // namespace

ArrayRef<InlineForm> emulator::getInlineMemory() {
  static const InlineForm forms[] = {
      {"ld", compileLoad,
       "ld[.weak,.volatile,.relaxed,.acquire][.scope][.global,.shared]"
       "[.nc][.L1::*][.L2::*][.v2,.v4].{b8 to b64}"},
      {"st", compileStore,
       "st[.weak,.volatile,.relaxed,.release][.scope][.global,.shared]"
       "[.L1::*][.L2::*][.v2,.v4].{b8 to b64}"},
      {"atom", compileUpdate<true>,
       "atom[.order][.scope][.global,.shared].{add,min,max,and,or,xor,exch,"
       "cas,inc,dec}[.noftz][.v2,.v4,.v8].<type>"},
      {"red", compileUpdate<false>,
       "red[.order][.scope][.global,.shared].{add,min,max,and,or,xor,inc,dec}"
       "[.noftz][.v2,.v4,.v8].<type>"},
  };
  return forms;
}
