//===- CostTable.h - fitted constants of the cost model ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What of the cost model was fitted to measurements and not derived; the values
// of each family of kernels are with its product, in lib/Products.
// bench/fit_model.py compares them with recorded times and proposes new ones.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COSTTABLE_H
#define NM_SPARSE_ANALYSIS_COSTTABLE_H

#include "nm_sparse/Analysis/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// How one family of kernels differs from what its counts say.
struct FamilyCosts {
  /// Part of the chip's ceiling that its products reach in the K loop.
  double mathShare;
  /// Part of the bytes asked for that L2 serves: CTAs of a wave ask for the
  /// same rows at nearly the same time.
  double l2Share;
  /// Of what overlaps with the binding resource, the part that shows.
  double shown;
  /// Seconds of the barriers of one K step, which other CTAs of the SM hide.
  double step;
  /// Seconds for which a thread is busy with one copy of 16 bytes.
  double copy;
  /// Seconds until copies arrive, which the ring has stages - 1 steps for.
  double latency;
  /// Seconds to fill the ring and to fetch the first index, once a tile.
  double tile;
  /// Part of the time in which the result is written that shows.
  double written;
};

/// What surrounds the K loops, alike in all families.
struct SharedCosts {
  /// Seconds from the end of the kernel before to the first copy.
  double launch;
  /// Seconds for one more CTA of a tile to hand over its part.
  double split;
  /// Seconds to exchange parts of tiles at the end of persistent CTAs, and to
  /// set their counters to zero.
  double stream;
  /// How many times as long as at its rate L2 takes for the operands of CTAs
  /// that are at different places of the contraction.
  double apart;
  /// Seconds that a launch takes less if it overlaps with the kernel before.
  double overlap;
  /// Seconds to launch a dense product of the vendor's library.
  double denseLaunch;
};
const SharedCosts &getSharedCosts(const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTTABLE_H
