//===- NMSparseBytecode.h - the bytecode of nm_sparse -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H

#include "nm_sparse/Dialect/NMSparse/IR/BytecodeVersion.h"

namespace mlir::nm_sparse {

/// Version 1: the attributes of nm_sparse.matmul by their names. Version 0 had
/// them in the order of their names, and wrote no version.
struct NMSparseBytecodeInterface : public VersionedBytecodeInterface {
  static constexpr uint64_t kCurrent = 1;

  explicit NMSparseBytecodeInterface(Dialect *dialect)
      : VersionedBytecodeInterface(dialect, kCurrent) {}
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H
