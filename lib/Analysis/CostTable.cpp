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

// Fitted by bench/fit_model.py to bench/results/h200-model.json,
// h200-overlap.json, h200-split.json, h200-steps.json, h200-panels.json and the
// feature-major layers of h200-f32, -f16 and -layouts, of an NVIDIA H200; mma
// with producers to some 30 runs of a GPU that is not hot. All of them before
// there were prefetches: products of less than 5 us now take 7 % less than
// predicted (the median), at most 20 %. The dense library:
// bench/results/h200-rivals.json. What tiles take that CTAs share:
// bench/results/h200-stream.json, and a memset.
//
// mathShare, l2Share, shown, step, copy, latency, tile, written
static constexpr CostTable h200 = {
    {/*simt*/ {1, 0.9, 0.15, 0.39e-6, 8e-9, 1.2e-6, 0.6e-6, 1},
     /*simt, producers*/ {1, 0.3, 0.13, 0.05e-6, 28e-9, 1.8e-6, 0.5e-6, 1},
     /*mma*/ {0.78, 0.65, 0.08, 0.19e-6, 27e-9, 2e-6, 0.1e-6, 0.95},
     /*mma, producers*/ {0.81, 0.65, 0.02, 0.08e-6, 25e-9, 0.9e-6, 1.9e-6, 0},
     /*mma, persistent*/
     {0.79, 0.65, 0.02, 0.02e-6, 23e-9, 1.5e-6, 1.2e-6, 0.15},
     /*wgmma*/ {1, 0.2, 0.3, 0, 35e-9, 1e-6, 0, 0.9},
     /*wgmma, producers*/
     {0.96, 0.5, 0.02, 0.06e-6, 30e-9, 0.7e-6, 1.4e-6, 0.25},
     /*wgmma, persistent*/
     {0.96, 0.5, 0.02, 0.02e-6, 23e-9, 1.5e-6, 1.2e-6, 0.35}},
    {/*launch*/ 1.3e-6, /*split*/ 2.8e-6, /*stream*/ 10e-6, /*apart*/ 1.14,
     /*overlap*/ 0.9e-6,
     /*denseLaunch*/ 4e-6}};

KernelFamily nm_sparse::getKernelFamily(ScheduleAttr schedule) {
  switch (schedule.getKind()) {
  case ScheduleKind::Simt:
    return schedule.getProducers() > 0 ? KernelFamily::SimtProducers
                                       : KernelFamily::Simt;
  case ScheduleKind::Mma:
    if (schedule.getProducers() == 0)
      return KernelFamily::Mma;
    return schedule.getPersistent() ? KernelFamily::MmaPersistent
                                    : KernelFamily::MmaProducers;
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
  case KernelFamily::SimtProducers:
    return "simt, producers";
  case KernelFamily::Mma:
    return "mma";
  case KernelFamily::MmaProducers:
    return "mma, producers";
  case KernelFamily::MmaPersistent:
    return "mma, persistent";
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
