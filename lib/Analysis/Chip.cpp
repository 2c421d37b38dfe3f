//===- Chip.cpp - what each GPU offers ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/Chip.h"

using namespace mlir::nm_sparse;

// name, PTX, shared of a CTA / SM, SMs, FFMA, mma.sync f16, wgmma f16, L2,
// DRAM, dense f16 / f32. Those of sm_90a are in bench/results/h200-rivals.json.
static constexpr Chip chips[] = {
    {"sm_80", "+ptx80", 166912, 167936, 108, 19.0e12, 260e12, 0, 4.0e12, 1.4e12,
     250e12, 15e12},
    {"sm_86", "+ptx80", 101376, 102400, 84, 34.0e12, 120e12, 0, 2.5e12, 0.85e12,
     115e12, 27e12},
    {"sm_89", "+ptx80", 101376, 102400, 128, 78.0e12, 280e12, 0, 5.0e12,
     0.92e12, 265e12, 62e12},
    {"sm_90a", "+ptx80", 232448, 233472, 132, 65.0e12, 636e12, 801e12, 7.2e12,
     4.6e12, 750e12, 51.5e12},
    {"sm_100a", "+ptx86", 232448, 233472, 148, 70.0e12, 700e12, 0, 9.0e12,
     7.0e12, 1500e12, 55e12},
    {"sm_120a", "+ptx87", 101376, 102400, 170, 95.0e12, 380e12, 0, 7.0e12,
     1.6e12, 360e12, 75e12},
};

llvm::ArrayRef<Chip> mlir::nm_sparse::getChips() { return chips; }

const Chip *mlir::nm_sparse::findChip(llvm::StringRef name) {
  for (const Chip &chip : chips)
    if (chip.name == name)
      return &chip;
  return nullptr;
}
