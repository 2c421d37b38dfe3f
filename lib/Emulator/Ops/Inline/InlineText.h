//===- InlineText.h - the text of inline PTX --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINETEXT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINETEXT_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::nm_sparse::emulator {

struct PtxOperand {
  enum class Kind {
    Name,      ///< $0, %tid.x, p, _ or a label
    Immediate, ///< 16, 0x1f, 0f3F800000, 1.0
    Address,   ///< [$0 + 16]; the base is empty in [16].
    Vector,    ///< {$0, $1}
    Pair,      ///< $0|p
  };
  Kind kind = Kind::Name;
  std::string name;       ///< A Name, or the base of an Address.
  bool isNegated = false; ///< !p
  /// The bits of an Immediate, or the offset of an Address.
  int64_t value = 0;
  /// The elements of a Vector or a Pair, or the operands after the base in [$0,
  /// {$1, $2}].
  std::vector<PtxOperand> elements;
};

struct PtxInstruction {
  std::string guard; ///< The p of @p; empty when it always runs.
  bool isGuardNegated = false;
  std::string mnemonic; ///< "cvt.rn.bf16x2.f32"
  std::vector<PtxOperand> operands;
};

struct PtxText {
  struct Register {
    std::string name, type; ///< "x" and "b32" in ".reg .b32 x".
  };
  std::vector<Register> registers;
  std::vector<PtxInstruction> instructions;
  /// Each before the instruction of this number.
  llvm::StringMap<size_t> labels;
};

/// Reads instructions, declarations of registers and labels.
llvm::Expected<PtxText> parsePtx(llvm::StringRef text);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINETEXT_H
