//===- BulkCopies.h - what bulk and tensor copies share ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_BULKCOPIES_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_BULKCOPIES_H

#include "Machine/MBarrier.h"

namespace mlir::nm_sparse::emulator {

/// Shared memory of one CTA that a bulk copy writes, with the mbarrier in that
/// CTA on which it completes.
class BulkTarget {
public:
  /// `address` and `mbarrierAddress` are shared addresses in one CTA.
  BulkTarget(Thread &thread, uint64_t address, uint64_t mbarrierAddress);

  uint64_t getAddress() const { return address; }
  /// `bytes` at `where`, a shared address like getAddress(), to be written.
  char *write(uint64_t where, uint32_t bytes, uint32_t alignment) const;
  /// `bytes` of shared memory of the executing thread's CTA at `where`, which
  /// the copy reads.
  const char *read(uint64_t where, uint32_t bytes, uint32_t alignment) const;
  /// `bytes` have been written, which the mbarrier learns.
  void complete(int64_t bytes) const;

private:
  Thread *thread;
  uint64_t address; ///< With the rank of another CTA.
  MBarrierTable *table;
  MBarrier *mbarrier;
};

/// The targets of a copy: those of the CTAs in `multicastMask`, at the same
/// offsets in each, or the one that `address` names.
SmallVector<BulkTarget, 1>
getBulkTargets(Thread &thread, uint64_t address, uint64_t mbarrierAddress,
               std::optional<uint16_t> multicastMask);

/// One copy out of shared memory, in the bulk group that its thread commits
/// next.
class BulkSource {
public:
  explicit BulkSource(Thread &thread);

  /// `bytes` of shared memory at `address`, to be read.
  const char *read(uint64_t address, uint32_t bytes, uint32_t alignment) const;
  /// `bytes` of global memory at `address`, to be written or updated.
  char *write(uint64_t address, uint32_t bytes, uint32_t alignment,
              AccessKind kind = AccessKind::Write) const;

private:
  Thread &thread;
  Moment moment;
};

/// cp.async.bulk.commit_group
void commitBulkCopies(Thread &thread);

/// cp.async.bulk.wait_group: until at most `remaining` groups are in flight, or
/// with `onlyReads` that many may still read shared memory.
void waitForBulkCopies(Thread &thread, uint32_t remaining, bool onlyReads);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_BULKCOPIES_H
