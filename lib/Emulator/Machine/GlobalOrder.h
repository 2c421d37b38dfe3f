//===- GlobalOrder.h - order between clusters -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters have clocks of their own; they learn of each other through atomic
// operations and fences on global memory, as PTX defines release and acquire
// patterns: what a thread knows when it executes a fence is published by its
// next atomic operation, and known to another thread after its first fence
// behind an atomic operation on the same address.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_GLOBALORDER_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_GLOBALORDER_H

#include "Memory/Clock.h"
#include "Memory/Site.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <atomic>
#include <mutex>

namespace mlir::nm_sparse::emulator {

/// The writes to global memory of one launch, and what its atomic operations
/// carry. Safe to use from several threads of the host.
class GlobalOrder {
public:
  /// `granule` divides the address and size of every access.
  explicit GlobalOrder(unsigned granule);

  /// Checks an access that is not atomic against earlier writes, and records
  /// it when it writes. What is wrong with it, empty when nothing is. Reads are
  /// not recorded: a write that overtakes a read is not found.
  std::string access(Thread &thread, AgentId agent, Moment moment,
                     const Clock &known, uint64_t address, uint32_t bytes,
                     AccessKind kind);
  /// A number that changes with each write to the range; 0 before the first of
  /// this launch.
  uint64_t getStamp(uint64_t address, uint32_t bytes);
  /// Lets `thread` see what was published at `address`; a fence makes it known.
  void observe(Thread &thread, uint64_t address);
  /// Publishes at `address` what `thread` knew at its last fence.
  void publish(Thread &thread, uint64_t address);

private:
  struct Mark {
    unsigned cluster = 0;
    AgentId agent = 0;
    Moment moment = 0;
    unsigned thread = 0;
    std::array<unsigned, 3> block = {};
    const Site *site = nullptr;
  };
  struct Shard {
    std::mutex mutex;
    llvm::DenseMap<uint64_t, Mark> writes; ///< By granule.
  };
  static constexpr size_t numShards = 64, numPages = 1 << 16;
  static size_t getPage(uint64_t address) { return (address >> 12) % numPages; }
  Shard &getShard(uint64_t granule) { return shards[granule / 64 % numShards]; }

  unsigned granuleShift;
  std::array<Shard, numShards> shards;
  /// Pages in which something was written; most reads are of inputs.
  std::unique_ptr<std::atomic<bool>[]> pages;
  std::mutex publishedMutex;
  llvm::DenseMap<uint64_t, ForeignClock> published;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_GLOBALORDER_H
