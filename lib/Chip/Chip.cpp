//===- Chip.cpp - what each GPU offers ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Chip/Chip.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::nm_sparse;

// name, GPU, PTX, shared of a CTA / SM, SMs, FFMA, mma.sync f16, wgmma f16, L2,
// DRAM, dense f16 / f32. Those of the H200 are in
// bench/results/h200-rivals.json.
static constexpr Chip chips[] = {
    {"sm_80", "a100", "+ptx80", 166912, 167936, 108, 19.0e12, 260e12, 0, 4.0e12,
     1.4e12, 250e12, 15e12},
    {"sm_86", "a6000", "+ptx80", 101376, 102400, 84, 34.0e12, 120e12, 0, 2.5e12,
     0.85e12, 115e12, 27e12},
    {"sm_89", "rtx4090", "+ptx84", 101376, 102400, 128, 78.0e12, 280e12, 0,
     5.0e12, 0.92e12, 265e12, 62e12},
    {"sm_90a", "h200", "+ptx82", 232448, 233472, 132, 65.0e12, 636e12, 801e12,
     7.2e12, 4.6e12, 750e12, 51.5e12},
    {"sm_100a", "b200", "+ptx86", 232448, 233472, 148, 70.0e12, 700e12, 0,
     9.0e12, 7.0e12, 1500e12, 55e12},
    {"sm_120a", "rtx5090", "+ptx87", 101376, 102400, 170, 95.0e12, 380e12, 0,
     7.0e12, 1.6e12, 360e12, 75e12},
};

// GPUs of a chip above with rates of their own. An H100 with HBM3 differs from
// an H200 in memory, and by a tenth in what L2 gives to large products
// (bench/results/h100-random.json).
static constexpr Chip others[] = {
    {"sm_90a", "h100", "+ptx82", 232448, 233472, 132, 65.0e12, 636e12, 801e12,
     6.6e12, 3.2e12, 750e12, 51.5e12},
};

static auto getAll() { return llvm::concat<const Chip>(chips, others); }

llvm::ArrayRef<Chip> mlir::nm_sparse::getChips() { return chips; }

const Chip *mlir::nm_sparse::findChip(llvm::StringRef name,
                                      llvm::StringRef gpu) {
  for (const Chip &chip : getAll())
    if (chip.name == name && (gpu.empty() || chip.gpu == gpu))
      return &chip;
  return nullptr;
}

const Chip *mlir::nm_sparse::findGPU(llvm::StringRef gpu) {
  for (const Chip &chip : getAll())
    if (chip.gpu == gpu)
      return &chip;
  return nullptr;
}

llvm::StringRef mlir::nm_sparse::getGPUOfDevice(llvm::StringRef device) {
  // NVIDIA GeForce RTX 4090, NVIDIA H100 80GB HBM3.
  std::string name = device.lower();
  llvm::erase(name, ' ');
  for (const Chip &chip : getAll())
    if (llvm::StringRef(name).contains(chip.gpu))
      return chip.gpu;
  return "";
}

llvm::SmallVector<llvm::StringRef> mlir::nm_sparse::getGPUs() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Chip &chip : getAll())
    names.push_back(chip.gpu);
  return names;
}
