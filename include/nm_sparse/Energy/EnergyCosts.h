//===- EnergyCosts.h - what GPUs take for each event ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_ENERGYCOSTS_H
#define NM_SPARSE_ENERGY_ENERGYCOSTS_H

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Energy/CombineEnergy.h"

namespace mlir::nm_sparse {

/// Returns the energy of each event on `chip`, or null if the energy of the GPU
/// was not measured.
const EnergyCosts *findEnergyCosts(const Chip &chip);

/// The GPUs whose energy was measured.
llvm::SmallVector<llvm::StringRef> getMeasuredGPUs();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_ENERGYCOSTS_H
