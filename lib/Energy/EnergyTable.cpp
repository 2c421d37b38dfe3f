//===- EnergyTable.cpp - the energy of events, by GPU ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Chip/GPUTable.h"
#include "nm_sparse/Energy/EnergyCosts.h"

#include <map>

using namespace mlir::nm_sparse;

/// The energies of the GPUs whose tables have them.
static std::map<llvm::StringRef, EnergyCosts> readAll() {
  std::map<llvm::StringRef, EnergyCosts> found;
  for (llvm::StringRef gpu : getGPUs())
    if (auto *energy = getGPUTable(gpu).getObject("energy"))
      found[gpu] = readNumbers(*energy, energyCostFields, gpu + ": energy");
  return found;
}

static const std::map<llvm::StringRef, EnergyCosts> &getAll() {
  static const auto all = readAll();
  return all;
}

const EnergyCosts *mlir::nm_sparse::findEnergyCosts(const Chip &chip) {
  auto found = getAll().find(chip.gpu);
  return found == getAll().end() ? nullptr : &found->second;
}

llvm::SmallVector<llvm::StringRef> mlir::nm_sparse::getMeasuredGPUs() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const auto &[gpu, costs] : getAll())
    names.push_back(gpu);
  return names;
}
