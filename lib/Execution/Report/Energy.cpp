//===- Energy.cpp - energy of recorded launches ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/Bench.h"

#include "nm_sparse/Runtime/Energy.h"
#include "nm_sparse/Runtime/Error.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The names of NVML's reasons for lower clocks.
static llvm::json::Array getSlowdowns(uint64_t slowdowns) {
  llvm::json::Array names;
  for (; slowdowns; slowdowns &= slowdowns - 1)
    names.push_back(nmsSlowdownName(slowdowns));
  return names;
}

static llvm::json::Object toJSON(const NmsEnergy &energy) {
  return llvm::json::Object{{"mj", energy.millijoules},
                            {"mj_half_width", energy.halfWidth},
                            {"us", energy.microseconds},
                            {"watts", energy.watts},
                            {"sm_mhz", energy.smMHz},
                            {"memory_mhz", energy.memoryMHz},
                            {"celsius", energy.celsius},
                            {"slowdowns", getSlowdowns(energy.slowdowns)},
                            {"calls", energy.calls},
                            {"repeats", energy.repeats}};
}

static std::string toText(const NmsEnergy &energy) {
  std::string text = llvm::formatv("{0:f3} mJ", energy.millijoules);
  if (energy.halfWidth > 0)
    text += llvm::formatv(" (+- {0:f3})", energy.halfWidth);
  return text +
         llvm::formatv(", {0:f0} W at {1:f0} MHz", energy.watts, energy.smMHz)
             .str();
}

/// How cuBLAS was faster: with the weight stored n x k.
static std::optional<bool> getFasterLayout(const RunReport &report) {
  const llvm::json::Object *cublas = report.json.getObject("cublas");
  if (!cublas)
    return std::nullopt;
  auto getTime = [&](StringRef layout) {
    return *cublas->getObject(layout)->getNumber("median_us");
  };
  // Both are of one product where the library reads no other layout.
  return getTime("tn") <= getTime("nn");
}

llvm::Error nm_sparse::measureEnergy(ArrayRef<Product> products, int64_t sets,
                                     const RunRequest &request,
                                     RunReport &report) {
  NmsPowerInfo power = {};
  if (nmsPowerInfo(&power))
    return llvm::createStringError(nmsLastError());
  NmsEnergyOptions options = {};
  options.seconds = request.energySeconds;
  options.repeats = static_cast<int32_t>(request.energyRepeats);
  options.sets = static_cast<int32_t>(sets);
  options.seed = static_cast<uint32_t>(request.seed);
  NmsEnergy ours = {}, dense = {};
  std::optional<bool> isTransposed = getFasterLayout(report);
  if (isTransposed) {
    const Product &p = products.front();
    if (nmsEnergyAgainstCublas(p.kind, p.m, p.n, p.k, p.batch, *isTransposed,
                               &options, &ours, &dense))
      return llvm::createStringError(nmsLastError());
  } else if (nmsEnergyRecorded(&options, &ours)) {
    return llvm::createStringError(nmsLastError());
  }
  llvm::json::Object json{
      {"idle_watts", power.idleWatts},   {"idle_sm_mhz", power.idleSmMHz},
      {"limit_watts", power.limitWatts}, {"counter_step_s", power.stepSeconds},
      {"seconds", options.seconds},      {"ours", toJSON(ours)}};
  report.text += "  " + toText(ours);
  if (isTransposed) {
    json["cublas"] = toJSON(dense);
    json["cublas"].getAsObject()->insert(
        {"layout", *isTransposed ? "tn" : "nn"});
    report.text += llvm::formatv(
        "; {0} {1}: {2:f2}x\n", getDenseName(products.front().kind),
        toText(dense), dense.millijoules / ours.millijoules);
  } else {
    report.text += "\n";
  }
  report.json["energy"] = std::move(json);
  return llvm::Error::success();
}
