//===- CombineEnergy.h - the energy that counted work takes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formula of the energy model, which knows neither MLIR nor schedules:
// bench/energy/fit_energy.py calls it through libnm_sparse_cost_model.so
// (CostModelC.h). Power that flows as long as a kernel runs, and energy for
// each event (docs/decisions/065-energy-from-events.md).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_COMBINEENERGY_H
#define NM_SPARSE_ENERGY_COMBINEENERGY_H

#include "nm_sparse/Support/NamedField.h"

#include <array>

namespace mlir::nm_sparse {

/// The work of a product and of the kernels before it, counted for the whole
/// product.
struct EnergyEvents {
  /// Flops of each kind of unit, with the padding to whole tiles. A sparse
  /// tensor core counts those that it executes, half of the dense product's.
  double tensorFlops = 0, sparseTensorFlops = 0, ffmaFlops = 0;
  /// Like ffmaFlops, for products with operands that lanes decode or convert
  /// first.
  double laneFlops = 0;
  double l2Bytes = 0, dramBytes = 0;
  double launches = 0;
  /// The part of the SMs that have a CTA.
  double busySMs = 0;
};

/// The energy that a GPU takes for these events, fitted to measurements.
struct EnergyCosts {
  /// Watts of a GPU whose clocks run, and of its SMs beside that, where all of
  /// them have CTAs.
  double idle, active;
  /// Seconds of a launch in which no SM has a CTA.
  double launch;
  /// Joules of a flop of each kind of unit.
  double tensorFlop, sparseTensorFlop, ffmaFlop, laneFlop;
  /// Joules of a byte.
  double l2Byte, dramByte;
  /// Watts that the GPU limits itself to, by lower clocks.
  double limit;
  /// An exponent: a product whose parts add up to r times the limit takes
  /// r^growth times as long once clocks have fallen.
  double growth;
};

/// The consumers of energy, in the order of the parts below.
enum class EnergyPart {
  Idle,
  ActiveSMs,
  TensorCores,
  SparseTensorCores,
  FFMA,
  Lanes,
  L2,
  DRAM
};
inline constexpr unsigned kNumEnergyParts = 8;
const char *getName(EnergyPart part);

struct CombinedEnergy {
  double joules;
  /// For a product that runs repeatedly, for a second or more.
  double seconds;
  /// Joules of each part, before the limit.
  std::array<double, kNumEnergyParts> parts;
  /// The parts exceed the limit: clocks fall, which lowers the energy of each
  /// event, until the limit times the time remains.
  bool isLimited;

  double getWatts() const { return joules / seconds; }
  EnergyPart getLargest() const;
};

/// How a time was measured: over a few runs of a product at the highest clocks,
/// as the cost model predicts it, or over so many runs that clocks have fallen
/// where they must.
enum class TimeOf { FewRuns, ManyRuns };

inline constexpr NamedField<EnergyEvents> energyEventFields[] = {
    {"tensorFlops", &EnergyEvents::tensorFlops},
    {"sparseTensorFlops", &EnergyEvents::sparseTensorFlops},
    {"ffmaFlops", &EnergyEvents::ffmaFlops},
    {"laneFlops", &EnergyEvents::laneFlops},
    {"l2Bytes", &EnergyEvents::l2Bytes},
    {"dramBytes", &EnergyEvents::dramBytes},
    {"launches", &EnergyEvents::launches},
    {"busySMs", &EnergyEvents::busySMs}};
inline constexpr NamedField<EnergyCosts> energyCostFields[] = {
    {"idle", &EnergyCosts::idle},
    {"active", &EnergyCosts::active},
    {"launch", &EnergyCosts::launch},
    {"tensorFlop", &EnergyCosts::tensorFlop},
    {"sparseTensorFlop", &EnergyCosts::sparseTensorFlop},
    {"ffmaFlop", &EnergyCosts::ffmaFlop},
    {"laneFlop", &EnergyCosts::laneFlop},
    {"l2Byte", &EnergyCosts::l2Byte},
    {"dramByte", &EnergyCosts::dramByte},
    {"limit", &EnergyCosts::limit},
    {"growth", &EnergyCosts::growth}};

CombinedEnergy combineEnergy(const EnergyEvents &events, double seconds,
                             const EnergyCosts &costs, TimeOf time);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_COMBINEENERGY_H
