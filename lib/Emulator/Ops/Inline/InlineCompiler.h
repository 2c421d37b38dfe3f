//===- InlineCompiler.h - inline PTX to steps -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An inline operation becomes a list of steps on a frame: one place for each
// operand and result of the operation, register that the text declares, and
// constant.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINECOMPILER_H
#define NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINECOMPILER_H

#include "Ops/Inline/InlineProgram.h"
#include "Ops/Inline/InlineText.h"
#include "mlir/IR/Diagnostics.h"
#include <map>

namespace mlir::nm_sparse::emulator {

/// Where an instruction finds an address.
struct InlineAddress {
  unsigned place = 0;
  unsigned bytes = 0; ///< Size of the base register; 0: there is no base.
  int64_t offset = 0;

  uint64_t operator()(Frame frame) const {
    uint64_t base = 0;
    if (bytes == 4)
      base = *static_cast<uint32_t *>(frame[place]);
    else if (bytes == 8)
      base = *static_cast<uint64_t *>(frame[place]);
    return base + offset;
  }
};

class InlineCompiler {
public:
  explicit InlineCompiler(Operation *op) : op(op) {}

  /// Compiles the text of an nvvm.inline_ptx or an llvm.inline_asm.
  FailureOr<Handler> run();
  /// See getRegistersOfA().
  SmallVector<Value> findRegistersOfA();

  //===--- For the forms --------------------------------------------------===//
  Operation *getOp() const { return op; }
  InFlightDiagnostic fail(const PtxInstruction &instruction) const;
  /// The place of a register or an immediate of `bytes` bytes; 0: of any size.
  FailureOr<unsigned> getValue(const PtxInstruction &instruction,
                               const PtxOperand &operand, unsigned bytes = 0);
  FailureOr<InlineAddress> getAddress(const PtxInstruction &instruction,
                                      const PtxOperand &operand);
  /// 8 for an immediate, which fits where fewer are wanted.
  unsigned getBytes(unsigned place) const {
    return program->places[place].bytes;
  }
  bool isConstant(unsigned place) const {
    return program->places[place].kind == Place::Constant;
  }

private:
  using Place = InlineProgram::Place;

  LogicalResult bind();
  LogicalResult bindInlinePtx();
  LogicalResult bindInlineAsm();
  void addPlace(StringRef name, Place place);
  LogicalResult addRegister(const PtxText::Register &declared);
  FailureOr<Step> compile(const PtxInstruction &instruction);
  StringRef getText() const;

  Operation *op;
  std::shared_ptr<InlineProgram> program = std::make_shared<InlineProgram>();
  llvm::StringMap<unsigned> names;
  /// The place of the predicate of nvvm.inline_ptx.
  std::optional<unsigned> predicate;
};

/// The operands that `op` hands to warpgroup products as registers of A, if it
/// is inline PTX that has such products.
SmallVector<Value> getRegistersOfA(Operation *op);

/// How one family of instructions is compiled.
struct InlineForm {
  StringRef family; ///< The mnemonic up to a dot: "ld", "cp.async".
  FailureOr<Step> (*compile)(InlineCompiler &, const PtxInstruction &);
  StringRef forms; ///< The emulated forms, for messages.
};

// One table for each file.
ArrayRef<InlineForm> getInlineMoves();    ///< mov, cvta, setp, selp
ArrayRef<InlineForm> getInlineMemory();   ///< ld, st, atom, red
ArrayRef<InlineForm> getInlineAsync();    ///< st.async, red.async
ArrayRef<InlineForm> getInlineBridges();  ///< Those of nvvm operations.
ArrayRef<InlineForm> getInlineProducts(); ///< mma, wgmma.mma_async

/// The instructions that are emulated, sorted, by the first word of their
/// mnemonics.
std::map<std::string, std::vector<std::string>> listInlinePtx();

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINECOMPILER_H
