//===- EnergyTable.cpp - fitted constants of the energy model -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/EnergyCosts.h"

#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir::nm_sparse;

namespace {
struct MeasuredGPU {
  llvm::StringRef gpu;
  EnergyCosts costs;
};
} // namespace

// Fitted by bench/energy/fit_energy.py to the energy of 150 products drawn at
// random, half of them dense, on an NVIDIA H100 of 700 W
// (bench/results/h100-energy-fit.json).
static constexpr EnergyCosts h100 = {
    /*idle*/ 171,
    /*active*/ 144,
    /*launch*/ 1.45e-6,
    /*tensorFlop*/ 1.05e-12,
    /*sparseTensorFlop*/ 1.35e-12,
    /*ffmaFlop*/ 9.15e-12,
    /*laneFlop*/ 26.7e-12,
    /*l2Byte*/ 20.1e-12,
    /*dramByte*/ 61.6e-12,
    /*limit*/ 700,
    /*growth*/ 0.19};

// To the same, as it is the same chip with other memory, and to 531 sparse
// products of 96 layers drawn at random on an NVIDIA H200 of 700 W
// (bench/results/h200-energy-fit.json;
// docs/decisions/083-energies-of-an-h200.md).
static constexpr EnergyCosts h200 = {
    /*idle*/ 145,
    /*active*/ 145,
    /*launch*/ 1.45e-6,
    /*tensorFlop*/ 0.918e-12,
    /*sparseTensorFlop*/ 1.01e-12,
    /*ffmaFlop*/ 8.05e-12,
    /*laneFlop*/ 23.5e-12,
    /*l2Byte*/ 34.1e-12,
    /*dramByte*/ 62.2e-12,
    /*limit*/ 700,
    /*growth*/ 0.18};

static constexpr MeasuredGPU measured[] = {{"h100", h100}, {"h200", h200}};

const EnergyCosts *mlir::nm_sparse::findEnergyCosts(const Chip &chip) {
  for (const MeasuredGPU &entry : measured)
    if (entry.gpu == chip.gpu)
      return &entry.costs;
  return nullptr;
}

llvm::SmallVector<llvm::StringRef> mlir::nm_sparse::getMeasuredGPUs() {
  return llvm::map_to_vector(
      measured, [](const MeasuredGPU &entry) { return entry.gpu; });
}
