//===- ClockSweep.h - kernels measured at other clocks ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the file that bench/collect_clocks.py writes (docs/Clocks.md), as
// untrusted input.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_CLOCKSWEEP_H
#define NM_SPARSE_ENERGY_CLOCKSWEEP_H

#include "nm_sparse/Energy/ClockParts.h"
#include "nm_sparse/Energy/Dvfs.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::nm_sparse {

struct SweepPoint {
  /// At the clocks that the GPU had; volts are 0 where nothing tells them.
  DvfsSample sample;
  /// The requested clocks; 0 where the GPU was free to choose.
  double askedCoreMHz = 0, askedMemoryMHz = 0;

  /// Returns true if the GPU kept the requested clocks, so it offers them.
  bool keptClocks() const;
};

struct SweepLayer {
  std::string name, encoding, type, schedule;
  int64_t batch = 1, tokens = 0, outputs = 0, inputs = 0;
  /// The cost model's parts of the time when the layer was recorded.
  std::optional<ClockParts> parts;
  std::vector<SweepPoint> points;
  /// Without any lock of clocks.
  std::optional<SweepPoint> unlocked;

  std::vector<DvfsSample> getSamples() const;
};

struct ClockSweep {
  std::string path;
  std::string gpu; ///< As the driver calls it.
  bool isSynthetic = false;
  std::vector<SweepLayer> layers;
};

/// Errors begin with `path`.
llvm::Expected<ClockSweep> parseClockSweep(llvm::StringRef text,
                                           llvm::StringRef path);
llvm::Expected<ClockSweep> readClockSweep(llvm::StringRef path);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_CLOCKSWEEP_H
