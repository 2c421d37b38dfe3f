//===- WarpgroupTable.h - products in flight --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products that a CTA's warpgroups have issued, committed and waited for,
// and the registers that setmaxnreg deals out. The products of a warpgroup are
// one agent, whose moments are commit groups. Not found: accumulators that are
// written between a product and the next one without wgmma.fence, and products
// that are never committed or waited for and whose results nothing uses.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPTABLE_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPTABLE_H

#include "Machine/Machine.h"

namespace mlir::nm_sparse::emulator {

class WarpgroupTable {
public:
  explicit WarpgroupTable(CTA &cta);
  /// That of the thread's CTA, made by the first call.
  static WarpgroupTable &get(Thread &thread);

  /// wgmma.fence.
  void fence(Thread &thread);
  /// The agent and the moment of a product that the warpgroup of `thread`
  /// issues now, as its current op.
  std::pair<AgentId, Moment> issue(Thread &thread);
  void commit(Thread &thread);
  /// Waits until at most `pending` committed groups are in flight.
  void wait(Thread &thread, uint64_t pending);
  /// A fault unless the last products that `thread` issued as `op` are
  /// complete.
  void useAccumulators(Thread &thread, Operation *op);
  /// `thread` writes registers, as its current op: a fault unless the last
  /// products that it issued as `readers`, which read them as A, are complete.
  void writeA(Thread &thread, ArrayRef<Operation *> readers);
  /// `thread` is about to issue a product that reads registers which `writers`
  /// write: a fault unless a wgmma.fence came after.
  void readA(Thread &thread, ArrayRef<Operation *> writers);

  /// setmaxnreg; all threads of the warpgroup have arrived.
  void setRegisters(Thread &thread, unsigned count, bool isIncrease);

private:
  struct Write {
    uint64_t fences; ///< That came before.
    const Site *site;
  };
  struct State { ///< The state of one thread.
    bool hasUncommitted = false;
    uint64_t fences = 0;
    Moment committed = 0, awaited = 0;
    llvm::DenseMap<Operation *, Moment> groups; ///< By the last execution.
    llvm::DenseMap<Operation *, Write> writes;  ///< Likewise.
  };
  /// A fault that says how `thread` `uses` registers of a warpgroup product
  /// unless the last ones that it issued as `op` are complete.
  void checkComplete(Thread &thread, Operation *op, const char *uses);
  State &getState(Thread &thread) { return states[thread.id]; }
  /// Registers dealt out, when warpgroup `number` had `count` for each thread.
  uint64_t countRegisters(unsigned number, unsigned count) const;

  CTA &cta;
  std::vector<State> states;
  llvm::DenseMap<unsigned, AgentId> agents; ///< By warpgroup.
  std::vector<unsigned>
      registers; ///< For each thread, by warpgroup; 0: unknown.
  std::vector<Thread *> waitingForRegisters;
};

/// Faults unless the results that `thread` has of `wgmma` are complete: called
/// before an operation reads them.
void useAccumulators(Thread &thread, Operation *wgmma);
/// See the members of WarpgroupTable.
void writeA(Thread &thread, ArrayRef<Operation *> readers);
void readA(Thread &thread, ArrayRef<Operation *> writers);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPTABLE_H
