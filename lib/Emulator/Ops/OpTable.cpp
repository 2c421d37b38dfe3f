//===- OpTable.cpp - lookup of operations by name -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/OpTable.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

ArrayRef<OpTable> emulator::getOpTables() {
  static const OpTable tables[] = {
      {"Special registers", getRegisterOps()},
      {"Barriers of warps, CTAs and clusters", getBarrierOps()},
      {"Fences and hints", getFenceOps()},
      {"Clusters", getClusterOps()},
      {"mbarriers", getMBarrierOps()},
      {"cp.async", getAsyncCopyOps()},
      {"Bulk copies", getBulkCopyOps()},
      {"Tensor copies (TMA)", getTensorCopyOps()},
      {"Tensor maps made by kernels", getTensorMapOps()},
      {"Exchange in a warp", getWarpOps()},
      {"Conversions and arithmetic", getArithmeticOps()},
      {"Intrinsics of LLVM", getIntrinsicOps()},
      {"Inline PTX", getInlineOps()},
      {"Fragments of matrices", getMatrixOps()},
      {"Products of a warp", getMmaOps()},
      {"Warpgroups", getWarpgroupOps()},
  };
  return tables;
}

static const llvm::StringMap<const OpEntry *> &getEntries() {
  static const llvm::StringMap<const OpEntry *> entries = [] {
    llvm::StringMap<const OpEntry *> map;
    for (const OpTable &table : emulator::getOpTables())
      for (const OpEntry &entry : table.ops) {
        [[maybe_unused]] bool isNew =
            map.try_emplace(entry.name, &entry).second;
        assert(isNew && "an operation is in two tables of the emulator");
      }
    return map;
  }();
  return entries;
}

const OpEntry *emulator::findOpEntry(StringRef name) {
  return getEntries().lookup(name);
}

const OpEntry *emulator::findIntrinsicEntry(StringRef intrinsic) {
  if (const OpEntry *entry = findOpEntry(intrinsic))
    return entry;
  // An overloaded intrinsic may be named with or without its types.
  return findOpEntry(intrinsic.rsplit('.').first);
}
