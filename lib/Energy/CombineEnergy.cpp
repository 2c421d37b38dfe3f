//===- CombineEnergy.cpp - the energy that counted work takes -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/CombineEnergy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir::nm_sparse;

const char *mlir::nm_sparse::getName(EnergyPart part) {
  static constexpr const char *names[kNumEnergyParts] = {
      "idle power", "active SMs",     "tensor cores", "sparse tensor cores",
      "FFMA",       "decoding lanes", "L2",           "DRAM"};
  return names[static_cast<unsigned>(part)];
}

EnergyPart CombinedEnergy::getLargest() const {
  return static_cast<EnergyPart>(std::max_element(parts.begin(), parts.end()) -
                                 parts.begin());
}

static std::array<double, kNumEnergyParts>
countParts(const EnergyEvents &events, double seconds,
           const EnergyCosts &costs) {
  double running = std::max(0.0, seconds - costs.launch * events.launches);
  return {costs.idle * seconds,
          costs.active * running * events.busySMs,
          costs.tensorFlop * events.tensorFlops,
          costs.sparseTensorFlop * events.sparseTensorFlops,
          costs.ffmaFlop * events.ffmaFlops,
          costs.laneFlop * events.laneFlops,
          costs.l2Byte * events.l2Bytes,
          costs.dramByte * events.dramBytes};
}

CombinedEnergy mlir::nm_sparse::combineEnergy(const EnergyEvents &events,
                                              double seconds,
                                              const EnergyCosts &costs,
                                              TimeOf time) {
  CombinedEnergy result;
  result.parts = countParts(events, seconds, costs);
  double sum = std::accumulate(result.parts.begin(), result.parts.end(), 0.0);
  double passed = sum / (costs.limit * seconds);
  result.isLimited = passed > 1;
  result.seconds = seconds;
  if (result.isLimited && time == TimeOf::FewRuns)
    result.seconds *= std::pow(passed, costs.growth);
  result.joules = result.isLimited ? costs.limit * result.seconds : sum;
  return result;
}
