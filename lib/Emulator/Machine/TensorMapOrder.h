//===- TensorMapOrder.h - who acquired which tensor map ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies read tensor maps through a proxy of their own, whose caches see what a
// kernel wrote only behind a fence.proxy.release of the writer, and a
// fence.proxy.acquire of the map after that. Each CTA needs its acquire once,
// and again after each change, also if another launch wrote the map. Maps that
// the host wrote need no fence.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_TENSORMAPORDER_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_TENSORMAPORDER_H

#include "Memory/Clock.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::nm_sparse::emulator {

class Thread;

/// The tensor maps that one CTA changed or acquired.
class TensorMapOrder {
public:
  /// `thread` has replaced a field of the map at `address`.
  void replace(Thread &thread, uint64_t address);
  /// `thread` executes fence.proxy.release, which holds for all maps that it
  /// knows threads of this CTA to have changed.
  void release(Thread &thread);
  /// `thread` executes fence.proxy.acquire on the map at `address`.
  void acquire(Thread &thread, uint64_t address);
  /// A copy of `thread` uses the map at `address`; a fault if a kernel wrote it
  /// and a fence since is missing or not ordered before the copy.
  void checkUse(Thread &thread, uint64_t address) const;

private:
  struct Fence {
    AgentId thread;
    Moment moment;
    /// The last write of the map that this launch had made.
    uint64_t stamp;
  };
  struct Change {
    AgentId thread;
    Moment moment;
    uint64_t address;
  };
  SmallVector<Change> unreleased;
  llvm::DenseMap<uint64_t, SmallVector<Fence, 1>> fences; ///< By address.
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_TENSORMAPORDER_H
