//===- ClockParts.h - which clock a time goes with --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_CLOCKPARTS_H
#define NM_SPARSE_ENERGY_CLOCKPARTS_H

namespace mlir::nm_sparse {

/// Seconds at the clocks that the rates of the chip are of: what no clock
/// changes, what goes with that of the cores, which L2 shares, and what goes
/// with that of the memory. The latter two overlap.
struct ClockParts {
  double fixed, core, memory;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_CLOCKPARTS_H
