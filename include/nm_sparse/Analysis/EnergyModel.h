//===- EnergyModel.h - predicted energy of a schedule -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joules of a product from what its code does, which is known exactly, and from
// the time that the cost model predicts or someone measured (docs/Energy.md).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_ENERGYMODEL_H
#define NM_SPARSE_ANALYSIS_ENERGYMODEL_H

#include "nm_sparse/Analysis/Prediction.h"
#include "nm_sparse/Energy/CombineEnergy.h"
#include <optional>

namespace mlir::nm_sparse {

/// The product's share of the work that earlier kernels do on its activations.
struct WorkBefore {
  double bytes = 0; ///< Read and written.
  double launches = 0;
};

/// Counts the events of a product with `schedule`; `prediction` knows its CTAs.
EnergyEvents countEnergyEvents(const MatmulProblem &problem,
                               ScheduleAttr schedule,
                               const Prediction &prediction, const Chip &chip,
                               const WorkBefore &before = {});

/// Counts the events of the vendor's dense product of this shape, for tiles of
/// 128 outputs and at most as many tokens.
EnergyEvents countDenseEvents(const MatmulProblem &problem, const Chip &chip);

/// Energy of `schedule`, which takes the predicted time; none on a GPU whose
/// energy nobody measured.
std::optional<CombinedEnergy> predictEnergy(const MatmulProblem &problem,
                                            ScheduleAttr schedule,
                                            const Prediction &prediction,
                                            const Chip &chip,
                                            const WorkBefore &before = {});

/// The same of the vendor's dense product, which takes `seconds`.
std::optional<CombinedEnergy> predictDenseEnergy(const MatmulProblem &problem,
                                                 double seconds,
                                                 const Chip &chip);

/// Time and energy of a kernel that takes `seconds`, reads and writes so many
/// bytes and computes nothing.
Prediction predictCopy(double bytes, double seconds, const Chip &chip);

/// Adds `times` times the time and energy of `one`; leaves the rest of `sum`.
void add(Prediction &sum, const Prediction &one, double times = 1);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_ENERGYMODEL_H
