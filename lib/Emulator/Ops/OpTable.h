//===- OpTable.h - the operations that the emulator knows -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To add an operation: one entry in the table of its file under Ops/, the
// function it names, and one test. docs/Emulator.md walks through it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_OPTABLE_H
#define NM_SPARSE_LIB_EMULATOR_OPS_OPTABLE_H

#include "Memory/Site.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::nm_sparse::emulator {

struct OpEntry {
  StringRef name; ///< "nvvm.ldmatrix"
  /// Called once for each operation of a kernel, when it is compiled: reads the
  /// attributes, emits an error on what is not emulated, and returns what each
  /// execution does.
  FailureOr<Handler> (*prepare)(Operation *op);
};

// One table for each file under Ops/.
ArrayRef<OpEntry> getRegisterOps();   ///< Special registers.
ArrayRef<OpEntry> getBarrierOps();    ///< barrier, cluster barrier.
ArrayRef<OpEntry> getFenceOps();      ///< fence.*, and hints to the scheduler.
ArrayRef<OpEntry> getClusterOps();    ///< mapa.
ArrayRef<OpEntry> getMBarrierOps();   ///< mbarrier.*
ArrayRef<OpEntry> getAsyncCopyOps();  ///< cp.async.*
ArrayRef<OpEntry> getBulkCopyOps();   ///< cp.async.bulk.*
ArrayRef<OpEntry> getTensorCopyOps(); ///< cp.async.bulk.tensor.*
ArrayRef<OpEntry> getTensorMapOps();  ///< tensormap.replace.*
ArrayRef<OpEntry> getWarpOps();       ///< shfl, vote, match, redux, elect.
ArrayRef<OpEntry> getMatrixOps();     ///< ldmatrix, stmatrix.
ArrayRef<OpEntry> getMmaOps();        ///< mma.sync, mma.sp.sync.
ArrayRef<OpEntry> getWarpgroupOps();  ///< wgmma.*, setmaxnreg.
ArrayRef<OpEntry> getArithmeticOps(); ///< Conversions, prmt, dp4a, ...
ArrayRef<OpEntry> getIntrinsicOps();  ///< llvm.nvvm.*
ArrayRef<OpEntry> getInlineOps();     ///< Inline PTX.

struct OpTable {
  StringRef title; ///< "Fences": for docs/Emulator.md.
  ArrayRef<OpEntry> ops;
};
/// All of the above.
ArrayRef<OpTable> getOpTables();

/// The entry for operations of this name, null when there is none.
const OpEntry *findOpEntry(StringRef name);

/// For LLVM::CallIntrinsicOp: the entry for `intrinsic`
/// ("llvm.nvvm.ex2.approx.f"), null when there is none.
const OpEntry *findIntrinsicEntry(StringRef intrinsic);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_OPTABLE_H
