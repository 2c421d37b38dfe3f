//===- InlineAsync.cpp - st.async and red.async in inline PTX -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They write to shared memory of the cluster and complete on an mbarrier beside
// it, like bulk copies, but through the generic proxy.
//
//===----------------------------------------------------------------------===//

#include "Machine/MBarrier.h"
#include "Ops/Inline/InlineCompiler.h"
#include "Ops/Memory/AtomicUpdate.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

struct AsyncForm {
  unsigned elements = 1, elementBytes = 0;
  AtomicUpdate update = nullptr; ///< Null: a store.

  unsigned getBytes() const { return elements * elementBytes; }
};

constexpr StringRef storeForms =
    "st.async[.weak].shared::cluster.mbarrier::complete_tx::bytes[.v2,.v4]"
    ".{b32,u32,s32,f32,b64,u64,s64}";
constexpr StringRef updateForms =
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
    "{add,min,max,inc,dec,and,or,xor}.{u32,s32,b32,u64}";

FailureOr<AsyncForm> readForm(InlineCompiler &compiler,
                              const PtxInstruction &instruction,
                              bool isUpdate) {
  AsyncForm form;
  StringRef name, type;
  bool completes = false;
  SmallVector<StringRef> parts;
  StringRef(instruction.mnemonic).split(parts, '.');
  for (StringRef part : ArrayRef(parts).drop_front(2)) {
    if (part == "v2" || part == "v4")
      part.drop_front().getAsInteger(10, form.elements);
    else if (part == "mbarrier::complete_tx::bytes")
      completes = true;
    else if (isAtomicUpdate(part))
      name = part;
    else if (getAtomicTypeBytes(part) >= 4)
      type = part;
  }
  form.elementBytes = getAtomicTypeBytes(type);
  form.update = findAtomicUpdate(name, type);
  if (!completes || !form.elementBytes || name.empty() == isUpdate ||
      (isUpdate && (!form.update || form.elements != 1)) ||
      instruction.operands.size() != 3)
    return compiler.fail(instruction)
           << "is not emulated; known is "
           << (isUpdate ? updateForms : storeForms) << " [a], b, [mbarrier]";
  return form;
}

/// `write` moves the elements to the place that it is given.
void runAsync(Thread &thread, uint64_t address, uint64_t mbarrierAddress,
              const AsyncForm &form, llvm::function_ref<void(char *)> write) {
  auto getRank = [&](uint64_t shared) {
    uint64_t rank = shared >> sharedRankShift;
    return rank == 0 ? thread.cta.rank : rank - 1;
  };
  if (getRank(address) != getRank(mbarrierAddress))
    thread.fault("writes to CTA " + Twine(getRank(address)) +
                 " of the cluster and completes on an mbarrier of CTA " +
                 Twine(getRank(mbarrierAddress)) +
                 ": the mbarrier must be in the CTA of the destination");
  auto [table, offset] = findMBarriers(thread, mbarrierAddress);
  MBarrier &mbarrier = table->get(thread, offset,
                                  getRank(address) == thread.cta.rank
                                      ? MBarrierUse::Thread
                                      : MBarrierUse::RemoteThread);
  write(thread.accessAs(
      table->getCopyAgent(mbarrier), MBarrierTable::getCopyMoment(mbarrier),
      /*isAsyncProxy=*/false, thread.known, address,
      AddressSpace::SharedCluster, form.getBytes(), form.getBytes(),
      form.update ? AccessKind::Atomic : AccessKind::Write));
  table->completeCopies(thread, mbarrier, form.getBytes());
}

template <bool isUpdate>
FailureOr<Step> compileAsync(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  FailureOr<AsyncForm> read = readForm(compiler, instruction, isUpdate);
  if (failed(read))
    return failure();
  AsyncForm form = *read;
  const PtxOperand &value = instruction.operands[1];
  ArrayRef<PtxOperand> elements = value;
  if (value.kind == PtxOperand::Kind::Vector)
    elements = value.elements;
  if (elements.size() != form.elements)
    return compiler.fail(instruction) << "wants " << form.elements
                                      << " registers, not " << elements.size();
  SmallVector<unsigned, 4> from;
  for (const PtxOperand &element : elements) {
    auto place = compiler.getValue(instruction, element, form.elementBytes);
    if (failed(place))
      return failure();
    from.push_back(*place);
  }
  auto address = compiler.getAddress(instruction, instruction.operands[0]);
  auto mbarrier = compiler.getAddress(instruction, instruction.operands[2]);
  if (failed(address) || failed(mbarrier))
    return failure();
  return Step([=, address = *address, mbarrier = *mbarrier](Thread &thread,
                                                            Frame frame) {
    runAsync(thread, address(frame), mbarrier(frame), form, [&](char *to) {
      for (auto [i, place] : llvm::enumerate(from)) {
        char *element = to + i * form.elementBytes;
        uint64_t operand = 0;
        std::memcpy(&operand, frame[place], form.elementBytes);
        if (form.update)
          updateAtomically(element, form.elementBytes, form.update, operand, 0);
        else
          std::memcpy(element, &operand, form.elementBytes);
      }
    });
  });
}

} // namespace

ArrayRef<InlineForm> emulator::getInlineAsync() {
  static const InlineForm forms[] = {
      {"st.async", compileAsync<false>, storeForms},
      {"red.async", compileAsync<true>, updateForms},
  };
  return forms;
}
