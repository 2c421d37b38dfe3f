//===- InlineProgram.cpp - executes inline PTX ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineProgram.h"

#include "Machine/Machine.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

void InlineProgram::run(Thread &thread, Values operands, Values results) const {
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
