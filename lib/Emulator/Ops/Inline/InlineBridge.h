//===- InlineBridge.h - runs inline PTX as an operation ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An instruction becomes the operation that stands for it, on the arguments of
// a block that nothing calls, and the handler of that operation runs.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEBRIDGE_H
#define NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEBRIDGE_H

#include "Ops/Inline/InlineCompiler.h"
#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse::emulator {

/// Builds one operation, and the step that runs it.
class InlineBridge {
public:
  InlineBridge(InlineCompiler &compiler, const PtxInstruction &instruction);

  size_t size() const { return instruction.operands.size(); }
  bool has(StringRef part) const { return llvm::is_contained(parts, part); }
  InFlightDiagnostic fail() const { return compiler.fail(instruction); }

  /// Operand `i`, a register or an immediate, as a value of type `type`.
  Value getValue(unsigned i, Type type);
  Value getI32(unsigned i) { return getValue(i, builder.getI32Type()); }
  /// Operand `i`, an address in `space`.
  Value getPointer(unsigned i, AddressSpace space);
  /// Operand `i`, which must be an immediate.
  int64_t getNumber(unsigned i);
  /// `operand` gets `bytes` bytes of the result, at `offset`.
  void setResult(const PtxOperand &operand, unsigned offset, unsigned bytes);
  /// The step, which runs the handler of `operation`.
  FailureOr<Step> finish(Operation *operation);

  std::shared_ptr<Block> block = std::make_shared<Block>();
  OpBuilder builder;
  Location loc;
  SmallVector<StringRef> parts;
  InlineCompiler &compiler;
  const PtxInstruction &instruction;

private:
  struct Source {
    unsigned place;
    std::optional<InlineAddress> address;
  };
  struct Result {
    unsigned place, offset, bytes;
  };

  /// In place of an operand that the instruction lacks.
  Value miss();

  SmallVector<Source> sources; ///< One for each argument of the block.
  SmallVector<Result> results;
  bool isBad = false;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_INLINE_INLINEBRIDGE_H
