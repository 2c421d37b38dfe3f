//===- Chip.cpp - what each GPU offers ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Chip/Chip.h"

#include "nm_sparse/Chip/GPUTable.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

using namespace mlir::nm_sparse;

static constexpr const char *files[] = {
#include "GPUTables.inc"
};

namespace {
/// All tables, and the chips in them, oldest first. Chips are named by strings
/// of their tables.
struct Tables {
  Tables();

  std::vector<llvm::json::Value> values;
  /// GPUs that stand for their architecture, and others.
  std::vector<Chip> defaults, others;
};
} // namespace

static constexpr NamedField<Chip> rates[] = {
    {"clock", &Chip::clock}, {"ffma", &Chip::ffma},
    {"mma", &Chip::mma},     {"wgmma", &Chip::wgmma},
    {"l2", &Chip::l2Bytes},  {"dram", &Chip::dramBytes},
    {"dense", &Chip::dense}, {"denseFFMA", &Chip::denseFFMA}};

static Chip readChip(const llvm::json::Object &table) {
  llvm::StringRef gpu = table.getString("gpu").value();
  const llvm::json::Object &limits = *table.getObject("limits");
  Chip chip = readNumbers(*table.getObject("rates"), rates, gpu + ": rates");
  chip.gpu = gpu;
  chip.name = table.getString("architecture").value();
  chip.features = table.getString("ptx").value();
  chip.isEstimated = table.getBoolean("estimated").value();
  chip.sharedBytes = limits.getInteger("sharedBytes").value();
  chip.sharedBytesPerSM = limits.getInteger("sharedBytesPerSM").value();
  chip.multiprocessors = limits.getInteger("multiprocessors").value();
  return chip;
}

Tables::Tables() {
  for (llvm::StringRef file : files)
    values.push_back(llvm::cantFail(llvm::json::parse(file)));
  for (const llvm::json::Value &value : values) {
    const llvm::json::Object &table = *value.getAsObject();
    bool isDefault = table.getBoolean("default").value();
    (isDefault ? defaults : others).push_back(readChip(table));
  }
  llvm::sort(defaults, [](const Chip &a, const Chip &b) {
    return a.getNumber() < b.getNumber();
  });
}

static const Tables &getTables() {
  static const Tables tables;
  return tables;
}

const llvm::json::Object &mlir::nm_sparse::getGPUTable(llvm::StringRef gpu) {
  for (const llvm::json::Value &value : getTables().values)
    if (value.getAsObject()->getString("gpu") == gpu)
      return *value.getAsObject();
  llvm::report_fatal_error("no table of a GPU called " + gpu);
}

static auto getAll() {
  return llvm::concat<const Chip>(getTables().defaults, getTables().others);
}

llvm::ArrayRef<Chip> mlir::nm_sparse::getChips() {
  return getTables().defaults;
}

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
