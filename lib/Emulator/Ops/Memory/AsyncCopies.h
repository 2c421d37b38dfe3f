//===- AsyncCopies.h - cp.async ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ASYNCCOPIES_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ASYNCCOPIES_H

#include "Machine/MBarrier.h"

namespace mlir::nm_sparse::emulator {

/// cp.async of `bytes`, of which the source has `sourceBytes`; the rest becomes
/// zero. Nothing is read, and the source need not exist, when it has none.
void copyAsync(Thread &thread, uint64_t sharedAddress, uint64_t globalAddress,
               uint32_t bytes, uint32_t sourceBytes);

/// cp.async.commit_group
void commitCopies(Thread &thread);

/// cp.async.wait_group: until at most `remaining` groups are in flight.
void waitForCopies(Thread &thread, uint32_t remaining);

/// cp.async.mbarrier.arrive, which releases the copies of `thread` alone;
/// `isExtra`: the phase did not count on it.
void arriveAfterCopies(Thread &thread, MBarrierTable &table, MBarrier &barrier,
                       bool isExtra);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_ASYNCCOPIES_H
