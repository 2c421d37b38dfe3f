//===- Site.h - one operation of a kernel -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MEMORY_SITE_H
#define NM_SPARSE_LIB_EMULATOR_MEMORY_SITE_H

#include "mlir/IR/Operation.h"
#include <functional>
#include <string>

namespace mlir::nm_sparse::emulator {

class Thread;

/// The operands or results of one execution by one thread: each points at a
/// value laid out as the host lays out its LLVM type, with every pointer 8
/// bytes wide (AddressSpace.h says what is in them) and i1 one byte.
using Values = void *const *;

/// Executes an operation for one thread. It may block the thread, and never
/// returns after a fault.
using Handler = std::function<void(Thread &, Values operands, Values results)>;

/// Strong ones (volatile, relaxed, acquire, release) and atomic updates of the
/// same address do not race with each other.
enum class AccessKind : uint8_t {
  Read,
  Write,
  StrongRead,
  StrongWrite,
  Atomic,
};
inline bool isStrong(AccessKind kind) { return kind >= AccessKind::StrongRead; }
inline bool reads(AccessKind kind) {
  return kind != AccessKind::Write && kind != AccessKind::StrongWrite;
}
inline bool writes(AccessKind kind) {
  return kind != AccessKind::Read && kind != AccessKind::StrongRead;
}

/// NVVM's numbers.
enum class AddressSpace : uint8_t {
  Generic = 0,
  Global = 1,
  Shared = 3,
  Constant = 4,
  Local = 5,
  SharedCluster = 7,
};

/// One operation of a compiled kernel, known before anything runs.
struct Site {
  Operation *op = nullptr; ///< Lives as long as the kernel.
  std::string text;        ///< "nvvm.barrier0 at linear.mlir:4:8".
  Handler handler;         ///< Null for loads, stores and atomics.

  // Only for loads, stores and atomics.
  AccessKind kind = AccessKind::Read;
  AddressSpace space = AddressSpace::Generic;
  uint32_t bytes = 0;
  uint32_t alignment = 1;
  /// May wait for another thread by repeating itself: a strong read, or a
  /// compare and swap.
  bool polls = false;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MEMORY_SITE_H
