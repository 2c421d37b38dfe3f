//===- Collective.h - operations of a warp or a warpgroup -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVE_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVE_H

#include "Machine/Machine.h"

namespace mlir::nm_sparse::emulator {

/// One participant that has arrived.
struct Lane {
  Thread *thread = nullptr; ///< Null: not in the mask.
  Values operands = nullptr, results = nullptr;

  template <typename T>
  T &operand(unsigned i) const {
    return *static_cast<T *>(operands[i]);
  }
  template <typename T>
  T &result(unsigned i) const {
    return *static_cast<T *>(results[i]);
  }
};

/// Waits until the threads of `mask` of the calling thread's warp have arrived
/// here; the last one runs `body` on all 32 lanes, and then all go on. A thread
/// that arrives with another mask or at another operation, or that has ended,
/// is a fault (divergence).
void runWarpCollective(Thread &thread, uint32_t mask, Values operands,
                       Values results,
                       llvm::function_ref<void(ArrayRef<Lane>)> body);

/// The same for the 128 threads of the calling thread's warpgroup.
void runWarpgroupCollective(Thread &thread, Values operands, Values results,
                            llvm::function_ref<void(ArrayRef<Lane>)> body);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVE_H
