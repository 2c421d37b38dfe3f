//===- InlineProgram.h - what inline PTX became -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEPROGRAM_H
#define NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEPROGRAM_H

#include "Memory/Site.h"
#include "Ops/Scalar/Registers.h"
#include <optional>

namespace mlir::nm_sparse::emulator {

/// Where the values of one execution are, by place.
using Frame = void *const *;
/// One instruction.
using Step = std::function<void(Thread &, Frame)>;

/// Everything that one execution of an inline operation needs.
struct InlineProgram {
  /// Where a value is kept.
  struct Place {
    enum Kind { Operand, Result, Local, Constant, Discarded } kind;
    unsigned bytes;
    unsigned index = 0;       ///< Index among the values of this kind.
    unsigned fieldOffset = 0; ///< In a result that is a struct.
  };
  struct Tie {
    unsigned operand, place, bytes; ///< The operand's value starts in `place`.
  };
  struct Instruction {
    Step step; ///< Null for a branch.
    std::optional<unsigned> guard;
    bool isGuardNegated = false;
    size_t target = 0; ///< The instruction that a branch goes to.
  };
  std::vector<Place> places;
  std::vector<Tie> ties;
  std::vector<uint64_t> constants;
  /// Special registers are read before the first instruction.
  std::vector<std::pair<unsigned, ReadRegister>> specials;
  std::vector<Instruction> instructions;
  unsigned numLocals = 0;

  void run(Thread &thread, Values operands, Values results) const;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEPROGRAM_H
