//===- NMSparseBytecode.h - the bytecode of nm_sparse -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H

#include "nm_sparse/Dialect/NMSparse/IR/BytecodeVersion.h"

namespace mlir::nm_sparse {

/// Version 2: nm_sparse.matmul has a list of components. Version 1 had an
/// operand for each, and version 0, which wrote no version, its attributes in
/// the order of their names.
struct NMSparseBytecodeInterface : public VersionedBytecodeInterface {
  static constexpr uint64_t kCurrent = 2;

  explicit NMSparseBytecodeInterface(Dialect *dialect)
      : VersionedBytecodeInterface(dialect, kCurrent) {}

  LogicalResult upgradeFromVersion(Operation *top,
                                   const DialectVersion &version) const final;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_NMSPARSEBYTECODE_H
