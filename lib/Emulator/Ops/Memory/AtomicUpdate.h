//===- AtomicUpdate.h - atomic updates of memory ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters run on several threads of the host, so global memory needs the
// host's atomic instructions.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ATOMICUPDATE_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ATOMICUPDATE_H

#include "mlir/Support/LLVM.h"

namespace mlir::nm_sparse::emulator {

/// The new value of one element; `other` is the third operand of cas.
using AtomicUpdate = uint64_t (*)(uint64_t old, uint64_t operand,
                                  uint64_t other);

/// Returns true if PTX has an update of this name: "add".
bool isAtomicUpdate(StringRef name);
/// Bytes of a type in memory: 4 of "b32" and "f16x2"; 0 when it is none.
unsigned getAtomicTypeBytes(StringRef type);
/// Null when `name` is not emulated for `type`.
AtomicUpdate findAtomicUpdate(StringRef name, StringRef type);

/// Loads `bytes` bytes, 1, 2, 4 or 8, from an address that is a multiple of
/// `bytes`.
uint64_t loadAtomically(const void *from, unsigned bytes);
void storeAtomically(void *to, unsigned bytes, uint64_t value);
/// Returns the old value.
uint64_t updateAtomically(void *where, unsigned bytes, AtomicUpdate update,
                          uint64_t operand, uint64_t other);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ATOMICUPDATE_H
