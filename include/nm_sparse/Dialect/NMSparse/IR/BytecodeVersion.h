//===- BytecodeVersion.h - versions of the dialects' bytecode ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each dialect of this project writes a version into bytecode, which grows by
// one when older files can no longer be read as they are. Attributes are
// written as text. docs/Embedding.md says what a host may rely on.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_BYTECODEVERSION_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_BYTECODEVERSION_H

#include "mlir/Bytecode/BytecodeImplementation.h"

namespace mlir::nm_sparse {

/// The version in a file. Files from before versions existed have none, and
/// count as version 0.
struct BytecodeVersion : public DialectVersion {
  explicit BytecodeVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

/// Writes the version that this build writes, and refuses files of later ones.
class VersionedBytecodeInterface : public BytecodeDialectInterface {
public:
  VersionedBytecodeInterface(Dialect *dialect, uint64_t current)
      : BytecodeDialectInterface(dialect), current(current) {}

  void writeVersion(DialectBytecodeWriter &writer) const override;
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override;

private:
  uint64_t current;
};

/// The version of `dialect` in the file that is read.
uint64_t getBytecodeVersion(DialectBytecodeReader &reader, StringRef dialect);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_BYTECODEVERSION_H
