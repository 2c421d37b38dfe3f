//===- ClockModel.h - which clocks suit a kernel ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DSO's equations (nm_sparse/Energy/Dvfs.h) fitted to a recorded sweep, for
// the layers in it and for others. It advises and sets nothing.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_CLOCKMODEL_H
#define NM_SPARSE_ENERGY_CLOCKMODEL_H

#include "nm_sparse/Energy/ClockSweep.h"

namespace mlir::nm_sparse {

/// A kernel under the equations, and how far they are off: root mean squares of
/// relative errors.
struct FittedKernel {
  DvfsDevice device;
  DvfsKernel kernel;
  DvfsPoint unlocked; ///< Where the GPU runs it by itself.
  /// The points at which a kernel can be run.
  std::vector<DvfsPoint> points;
  /// None where there is nothing to compare with.
  std::optional<double> timeError, powerError;
};

/// The predicted time and power of a kernel at one point.
struct ClockPrediction {
  DvfsPoint at;
  double seconds, watts;

  double getJoules() const { return seconds * watts; }
};

struct ClockAdvice {
  ClockPrediction unlocked, chosen;
  /// The core clock beyond which the memory bounds the kernel, with the memory
  /// as at the chosen point.
  double kneeMHz;
};

class ClockModel {
public:
  /// Fails if the numbers of `sweep` do not allow a fit.
  static llvm::Expected<ClockModel> fit(ClockSweep sweep);

  const ClockSweep &getSweep() const { return sweep; }
  /// The limitations of the sweep, one sentence each.
  const std::vector<std::string> &getNotes() const { return notes; }

  /// The kernel of layer `i`, by its own points.
  const FittedKernel &getLayer(size_t i) const { return layers[i]; }
  /// A kernel outside the sweep: the cost model's prediction, scaled by its
  /// error for the layers of the sweep. None if the sweep does not record the
  /// predictions for those.
  std::optional<FittedKernel> predict(const ClockParts &parts) const;

  /// The pair of clocks that takes the least energy of those that take at most
  /// 1 + `maxLoss` of the shortest time. The pairs are those that the GPU was
  /// asked for and kept, with this layer if it is in the sweep, and its own.
  ClockAdvice advise(const FittedKernel &kernel, double maxLoss) const;

private:
  void settleVolts();
  void findUsual();
  llvm::Error fitLayers();
  void fitShared();
  DvfsKernel getGuess(const ClockParts &parts) const;
  FittedKernel apply(const ClockParts &parts, const DvfsScale &scale,
                     const DvfsPower &power) const;
  bool fitOthers(const std::vector<size_t> &chosen, DvfsScale &scale,
                 DvfsPower &power) const;

  ClockSweep sweep;
  std::vector<std::string> notes;
  std::vector<DvfsPoint> points; ///< That some layer was run at.
  DvfsPoint usual = {};          ///< Where the GPU runs by itself.
  std::vector<FittedKernel> layers;
  bool hasShared = false;
  DvfsScale scale;
  DvfsPower power = {};
  std::optional<double> timeError, powerError; ///< By cross-validation.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_CLOCKMODEL_H
