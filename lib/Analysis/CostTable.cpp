//===- CostTable.cpp - what each family of kernels costs ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostTable.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct CostTable {
  FamilyCosts families[kNumKernelFamilies];
  SharedCosts shared;
};
} // namespace

// Fitted to an NVIDIA H200. simt and mma: bench/results/h200-speed.json.
// wgmma: 8192 x 8192 x 8192 at L = 128 and 256, 50 to 87.5 %.
// The dense library: bench/results/h200-rivals.json.
//
// mathShare, l2Share, shown, step, copy, latency, tile, written
static constexpr CostTable h200 = {
    {/*simt*/ {1.0, 0.75, 0.15, 0.35e-6, 0, 1.8e-6, 2e-6, 1.0},
     /*mma*/ {1.0, 0.75, 0.15, 0.35e-6, 0, 1.8e-6, 2e-6, 1.0},
     /*wgmma*/ {1.0, 0.75, 0.3, 0.2e-6, 0, 1.8e-6, 2e-6, 0.5},
     /*wgmma, producers*/ {0.83, 0.75, 0.05, 0, 25e-9, 1.8e-6, 3.2e-6, 0.5},
     /*wgmma, persistent*/ {0.84, 0.75, 0.05, 0, 25e-9, 1.8e-6, 2.4e-6, 0.2}},
    {/*split*/ 2e-6, /*denseLaunch*/ 4e-6}};

KernelFamily nm_sparse::getKernelFamily(ScheduleAttr schedule) {
  switch (schedule.getKind()) {
  case ScheduleKind::Simt:
    return KernelFamily::Simt;
  case ScheduleKind::Mma:
    return KernelFamily::Mma;
  case ScheduleKind::Wgmma:
    if (schedule.getProducers() == 0)
      return KernelFamily::Wgmma;
    return schedule.getPersistent() ? KernelFamily::WgmmaPersistent
                                    : KernelFamily::WgmmaProducers;
  }
  llvm_unreachable("covered switch");
}

llvm::StringRef nm_sparse::stringifyKernelFamily(KernelFamily family) {
  switch (family) {
  case KernelFamily::Simt:
    return "simt";
  case KernelFamily::Mma:
    return "mma";
  case KernelFamily::Wgmma:
    return "wgmma";
  case KernelFamily::WgmmaProducers:
    return "wgmma, producers";
  case KernelFamily::WgmmaPersistent:
    return "wgmma, persistent";
  }
  llvm_unreachable("covered switch");
}

// One chip has been measured; the seconds of the others are taken to be alike,
// and their rates are in the table of chips.
const FamilyCosts &nm_sparse::getFamilyCosts(const Chip &,
                                             KernelFamily family) {
  return h200.families[static_cast<size_t>(family)];
}

const SharedCosts &nm_sparse::getSharedCosts(const Chip &) {
  return h200.shared;
}
