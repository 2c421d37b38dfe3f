//===- ClockParts.h - which clock a time goes with --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_CLOCKPARTS_H
#define NM_SPARSE_ENERGY_CLOCKPARTS_H

namespace mlir::nm_sparse {

/// Seconds at the clocks at which the rates of the chip hold: a fixed part, one
/// that scales with the core clock, which L2 shares, and one that scales with
/// the memory clock. The latter two overlap.
struct ClockParts {
  double fixed, core, memory;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_CLOCKPARTS_H
