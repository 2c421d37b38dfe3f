//===- CollectiveTable.h - warps that gather at an operation ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVETABLE_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVETABLE_H

#include "Machine/Collective.h"

namespace mlir::nm_sparse::emulator {

/// The collective operations in progress in one CTA.
class CollectiveTable {
public:
  /// One operation that some of its threads have reached.
  struct Gathering {
    const Site *site = nullptr;
    uint32_t mask = 0; ///< Lanes of a warp; all ones for a warpgroup.
    unsigned firstThread = 0;
    unsigned wanted = 0, arrived = 0;
    SmallVector<Lane, 0> lanes;
  };

  /// Adds the calling thread to the gathering of `site` over `lanes` threads
  /// from `firstThread` on, and runs `body` when it is the last.
  void join(Thread &thread, unsigned firstThread, unsigned lanes, uint32_t mask,
            Values operands, Values results,
            llvm::function_ref<void(ArrayRef<Lane>)> body);
  /// The error if `thread` ends while others wait for it; empty if none do.
  std::string threadEnded(Thread &thread);

private:
  // Few are in progress at a time: threads with disjoint masks, and warps.
  SmallVector<std::unique_ptr<Gathering>> gatherings;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_COLLECTIVETABLE_H
