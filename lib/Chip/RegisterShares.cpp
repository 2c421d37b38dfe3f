//===- RegisterShares.cpp - registers that warps pass on ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Chip/RegisterShares.h"

#include <algorithm>

using namespace mlir::nm_sparse;

static constexpr int64_t kRegistersPerSM = 65536, kGranule = 8;

int64_t mlir::nm_sparse::getEntryRegisters(int64_t threads) {
  return kRegistersPerSM / threads / kGranule * kGranule;
}

std::optional<RegisterShares> mlir::nm_sparse::shareRegisters(int64_t consumers,
                                                              int64_t producers,
                                                              bool lean) {
  // setmaxnreg speaks for a whole warpgroup.
  if (producers == 0 || consumers % 128 != 0 || producers % 128 != 0)
    return std::nullopt;
  // With 56, producers that gather chunk by chunk for two panels, or from tile
  // to tile, spill up to 100 bytes, with 72 none do; lean ones need no more
  // than 40, and what they leave makes f32 products faster by 1 %. setmaxnreg
  // gives 240 at most.
  constexpr int64_t most = 240;
  int64_t producer = lean ? 40 : 72;
  int64_t atEntry = getEntryRegisters(consumers + producers);
  int64_t rest = atEntry * (consumers + producers) - producer * producers;
  int64_t consumer = std::min(most, rest / consumers / kGranule * kGranule);
  if (consumer <= atEntry)
    return std::nullopt;
  return RegisterShares{producer, consumer};
}
