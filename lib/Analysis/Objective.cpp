//===- Objective.cpp - what schedules are compared by ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/Objective.h"

#include "nm_sparse/Energy/EnergyCosts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

double nm_sparse::getScore(const Prediction &prediction, Objective objective) {
  switch (objective) {
  case Objective::Time:
    return prediction.seconds;
  case Objective::Energy:
    return prediction.joules;
  case Objective::EDP:
    return prediction.joules * prediction.sustained;
  }
  llvm_unreachable("all objectives are handled");
}

llvm::StringRef nm_sparse::getName(Objective objective) {
  switch (objective) {
  case Objective::Time:
    return "time";
  case Objective::Energy:
    return "energy";
  case Objective::EDP:
    return "edp";
  }
  llvm_unreachable("all objectives are handled");
}

llvm::Expected<Objective> nm_sparse::parseObjective(llvm::StringRef text,
                                                    const Chip &chip) {
  auto found = llvm::StringSwitch<std::optional<Objective>>(text)
                   .Case("time", Objective::Time)
                   .Case("energy", Objective::Energy)
                   .Case("edp", Objective::EDP)
                   .Default(std::nullopt);
  if (!found)
    return llvm::createStringError("unknown objective '" + text.str() +
                                   "'; legal are time, energy and edp");
  if (*found == Objective::Time || findEnergyCosts(chip))
    return *found;
  return llvm::createStringError("objective = " + text.str() +
                                 ", but the energy of " + chip.gpu.str() +
                                 " has not been measured; that of these has: " +
                                 llvm::join(getMeasuredGPUs(), ", "));
}
