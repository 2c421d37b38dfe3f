//===- BankConflicts.h - banks of shared memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared memory has 32 banks of 4 bytes, each of which gives one word to a
// wavefront. Threads run one after the other here, so what the lanes of a warp
// access together is put together from the accesses of each.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_BANKCONFLICTS_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_BANKCONFLICTS_H

#include "Machine/Machine.h"
#include "nm_sparse/Emulator/Emulator.h"
#include <array>

namespace mlir::nm_sparse::emulator {

/// The kinds of access to shared memory, as profilers tell them apart.
enum class SharedOp : uint8_t {
  Load,
  Store,
  LoadMatrix,
  StoreMatrix,
  AsyncCopy,
};
constexpr unsigned numSharedOps = 5;

/// "ld.shared".
StringRef getSharedOpName(SharedOp op);

/// One instruction of a warp: which lanes execute it, and where.
struct WarpAccess {
  uint32_t lanes = 0; ///< A bit for each.
  uint32_t bytes = 0; ///< Accessed by a lane: 1, 2, 4, 8 or 16.
  std::array<uint32_t, warpSize> addresses;
};

/// The wavefronts of `access`. Lanes that access 16 bytes go in quarters of the
/// warp, those that access 8 in halves. Two wavefronts or more in one such
/// phase are a conflict; a word that several lanes access counts once.
BankUse countWavefronts(const WarpAccess &access);

/// The use of banks by all CTAs of a launch.
class BankTable {
public:
  void add(SharedOp op, const BankUse &use);
  /// Returns the use of banks for each kind of access that occurred.
  std::vector<std::pair<std::string, BankUse>> getUses() const;

private:
  mutable std::mutex mutex;
  std::array<BankUse, numSharedOps> uses;
};

/// Puts together what the lanes of each warp of one CTA access. The same
/// execution of an operation is the one with the same number since all lanes of
/// the warp met, at a barrier or at an operation of the whole warp.
class BankCounter {
public:
  explicit BankCounter(BankTable &table) : table(table) {}
  /// Counts what is left.
  ~BankCounter();

  /// An access of `bytes` at the offset `address` of the CTA's shared memory,
  /// by instructions of at most `alignment` bytes.
  void record(Thread &thread, SharedOp op, uint32_t address, uint32_t bytes,
              uint32_t alignment);

private:
  struct Execution {
    size_t meetings; ///< Meetings of the warp before it.
    size_t number;   ///< Since the last of them.
    WarpAccess access;
  };
  /// One operation of one warp.
  struct Stream {
    SharedOp op;
    /// Executions that lanes may still join, by their numbers.
    std::deque<Execution> open;
    /// For each lane: the meetings that it has passed, as in Execution, and its
    /// next access.
    std::array<size_t, warpSize> meetings = {}, next = {};
  };

  void join(Thread &thread, Stream &stream, uint32_t address, uint32_t bytes);
  void close(Stream &stream, const std::deque<Execution>::iterator &execution);

  BankTable &table;
  llvm::DenseMap<std::pair<const Site *, unsigned>, Stream> streams;
  std::array<BankUse, numSharedOps> uses;
};

/// Records an access of `thread`, where banks are counted and it is the memory
/// of its own CTA.
void countBanks(Thread &thread, SharedOp op, uint64_t address,
                AddressSpace space, uint32_t bytes, uint32_t alignment);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_BANKCONFLICTS_H
