//===- Memory.h - the memories of the emulated GPU --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every byte has a shadow. Global memory knows which of its bytes were written;
// shared memory also who accessed them last, which is what races are found by.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MEMORY_MEMORY_H
#define NM_SPARSE_LIB_EMULATOR_MEMORY_MEMORY_H

#include "Memory/Clock.h"
#include "Memory/Site.h"
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace mlir::nm_sparse::emulator {

class Cluster;

/// Generic addresses of shared memory start here; no host pointer does.
constexpr uint64_t sharedWindow = uint64_t(0x7e) << 56;
/// A shared address is an offset below 2^24 in the CTA that uses it; in the
/// bits above is the rank of another CTA of the cluster plus one.
constexpr unsigned sharedRankShift = 24;

/// Device memory: host memory between guard zones, at its host address.
class GlobalMemory {
public:
  ~GlobalMemory();
  /// At least 256-byte aligned, filled with 0xff (NaN), and unwritten. Null
  /// when the host has no memory.
  void *allocate(size_t bytes);
  /// False when nothing was allocated at `pointer`.
  bool release(void *pointer);
  /// Makes existing host memory, such as a constant of a kernel, accessible.
  void adopt(void *pointer, size_t bytes);
  /// Lets nothing write from now on to what was allocated at `pointer`.
  void protect(void *pointer);

  /// Returns the error of an access, empty if there is none. Writes mark the
  /// bytes as written, by a kernel or by the host. Safe to call from several
  /// threads of the host.
  std::string access(uint64_t address, size_t bytes, AccessKind kind,
                     bool fromKernel = false);
  /// Returns true if a kernel was the last to write some byte of the range.
  /// Bytes from before it became device memory count as the host's.
  bool isFromKernel(uint64_t address, size_t bytes);
  /// Notes that what a kernel wrote to the range is not released to the proxy
  /// that reads tensor maps, or is by now. Holds until the next write.
  void setUnreleased(uint64_t address, size_t bytes, bool isUnreleased);
  /// Returns true if that holds for some byte of the range.
  bool isUnreleased(uint64_t address, size_t bytes);
  /// The first byte of the range that was never written; empty when all were.
  /// The range must be inside one allocation.
  std::optional<uint64_t> findUnwritten(uint64_t address, size_t bytes);
  /// Returns true if all of the range is device memory.
  bool contains(uint64_t address, size_t bytes);

private:
  struct Block {
    char *memory = nullptr; ///< With its guard zones; null when adopted.
    uint64_t begin = 0, end = 0;
    bool isProtected = false;
    /// One Writer for each byte. Null: all of it always was written.
    std::unique_ptr<std::atomic<uint8_t>[]> written;
  };
  enum Writer : uint8_t { Nobody = 0, Host, Kernel, UnreleasedKernel };
  const Block *find(uint64_t address);
  /// The writers of a range that is inside one block; null where it is not, or
  /// where nobody keeps them.
  std::atomic<uint8_t> *findWriters(uint64_t address, size_t bytes);
  bool hasWriter(uint64_t address, size_t bytes, Writer first);

  std::shared_mutex mutex;
  std::map<uint64_t, Block> blocks;      ///< By begin.
  std::map<uint64_t, uint64_t> released; ///< Begin to end, for messages.
};

/// An access to shared memory, and what it knows of the others.
struct SharedAccess {
  AccessKind kind;
  bool isAsyncProxy;
  AgentId agent;
  Moment moment;
  /// Everything that happened before it.
  const Clock *known;
  const Site *site;
  unsigned thread; ///< In the CTA of `rank`, for messages.
  unsigned rank;   ///< In the cluster, of the CTA whose thread it is.
};

/// The shared memory of one CTA.
class SharedMemory {
public:
  /// `granule`: a power of two that divides the address and size of every
  /// access the kernel can make, so that the shadow needs one cell for each.
  SharedMemory(size_t bytes, unsigned granule);

  size_t size() const { return data.size(); }
  char *getData() { return data.data(); }
  /// Checks one access inside the bounds and records it. Returns the error of
  /// the access, empty if there is none.
  std::string access(const Cluster &cluster, uint32_t offset, uint32_t bytes,
                     const SharedAccess &access);
  /// An access of another CTA or of the async proxy to this memory that `known`
  /// does not contain, so it may still happen; empty if there is none.
  std::string findInFlight(const Cluster &cluster,
                           const VectorClock &known) const;

private:
  struct Mark {
    AgentId agent = 0;
    Moment moment = 0;
    bool isAsyncProxy = false, isStrong = false;
    uint16_t thread = 0, rank = 0;
    const Site *site = nullptr;
  };
  struct Cell {
    Mark write; ///< Moment 0: never written.
    SmallVector<Mark, 1>
        reads; ///< Since the write, none ordered before another.
  };
  std::string describeAgent(const Cluster &cluster, const Mark &mark) const;
  std::string describe(const Cluster &cluster, const SharedAccess &access,
                       uint32_t offset, uint32_t bytes, const Mark &other,
                       bool otherWrites) const;

  std::vector<char> data;
  std::vector<Cell> cells;
  unsigned granuleShift;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MEMORY_MEMORY_H
