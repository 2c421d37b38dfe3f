//===- CostTable.cpp - fitted costs of the cost model ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostTable.h"

#include "nm_sparse/Chip/GPUTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// The costs in one table.
struct Costs {
  SharedCosts shared;
  DenseCosts onTensorCores, onCudaCores;
  llvm::StringMap<ProductCosts> families;
};
} // namespace

static Costs readCosts(StringRef gpu) {
  const llvm::json::Object &table = getGPUTable(gpu);
  StringRef from = table.getString("costsOf").value_or(gpu);
  const llvm::json::Object &costs = *getGPUTable(from).getObject("costs");
  auto where = [&](StringRef part) {
    return (from + ": costs: " + part).str();
  };
  Costs result;
  result.shared = readNumbers(*costs.getObject("shared"), sharedCostFields,
                              where("shared"));
  const llvm::json::Object &dense = *costs.getObject("dense");
  result.onTensorCores = readNumbers(*dense.getObject("tensorCores"),
                                     denseCostFields, where("dense"));
  result.onCudaCores = readNumbers(*dense.getObject("cudaCores"),
                                   denseCostFields, where("dense"));
  for (const auto &[family, numbers] : *costs.getObject("families"))
    result.families[family] =
        readNumbers(*numbers.getAsObject(), productCostFields, where(family));
  return result;
}

/// Those of all GPUs are read at once, so that threads may ask.
static const Costs &getCosts(const Chip &chip) {
  static const auto all = [] {
    llvm::StringMap<Costs> found;
    for (StringRef gpu : getGPUs())
      found[gpu] = readCosts(gpu);
    return found;
  }();
  return all.find(chip.gpu)->second;
}

const SharedCosts &nm_sparse::getSharedCosts(const Chip &chip) {
  return getCosts(chip).shared;
}

const ProductCosts &nm_sparse::getProductCosts(StringRef family,
                                               const Chip &chip) {
  const auto &families = getCosts(chip).families;
  auto found = families.find(family);
  // A product outside of this project has no row: its work costs what the
  // ceilings say.
  static const ProductCosts ideal;
  return found == families.end() ? ideal : found->second;
}

const DenseCosts &nm_sparse::getDenseCosts(bool onTensorCores,
                                           const Chip &chip) {
  const Costs &costs = getCosts(chip);
  return onTensorCores ? costs.onTensorCores : costs.onCudaCores;
}

int64_t nm_sparse::getRunningClusters(int64_t ctas, const Chip &chip) {
  auto *running =
      getGPUTable(chip.gpu).getObject("limits")->getArray("runningClusters");
  // The first number is that of pairs.
  size_t index = ctas - 2;
  if (!running || index >= running->size())
    return 0;
  return (*running)[index].getAsInteger().value_or(0);
}
