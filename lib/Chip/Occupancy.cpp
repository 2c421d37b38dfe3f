//===- Occupancy.cpp - who shares the registers of an SM ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Chip/Occupancy.h"

#include <algorithm>

using namespace mlir::nm_sparse;

static constexpr int64_t kRegistersPerSM = 65536;

/// Bytes that the system reserves in each CTA.
static constexpr int64_t kReservedSharedBytes = 1024;

int64_t mlir::nm_sparse::getCtasBySharedMemory(int64_t sharedBytes,
                                               const Chip &chip) {
  return chip.sharedBytesPerSM / (sharedBytes + kReservedSharedBytes);
}

int64_t mlir::nm_sparse::getSharedCarveout(int64_t sharedBytes,
                                           const Chip &chip) {
  // CUDA C++ Programming Guide, compute capability 9.x; others have some of
  // these sizes.
  for (int64_t kilobytes : {8, 16, 32, 64, 100, 132, 164, 196})
    if (sharedBytes + kReservedSharedBytes <= kilobytes * 1024)
      return std::min(kilobytes * 1024, chip.sharedBytesPerSM);
  return chip.sharedBytesPerSM;
}

int64_t mlir::nm_sparse::getCtasPerSM(int64_t sharedBytes, int64_t threads,
                                      int64_t accumulators, const Chip &chip) {
  // Beside the accumulators: fragments, addresses, copies in flight. With 88,
  // kernels with a GELU epilogue spill up to 400 bytes.
  constexpr int64_t workingRegisters = 104;
  int64_t registers = std::max<int64_t>(128, accumulators + workingRegisters);
  int64_t ctas = std::min(getCtasBySharedMemory(sharedBytes, chip),
                          kRegistersPerSM / (registers * threads));
  return std::max<int64_t>(1, ctas);
}

int64_t mlir::nm_sparse::getCtasByRegisters(int64_t threads,
                                            int64_t registers) {
  // Registers are given to a warp 8 of each thread at a time.
  constexpr int64_t mostThreads = 2048, mostCtas = 32, granule = 8;
  int64_t given = (registers + granule - 1) / granule * granule;
  int64_t ctas = std::min(mostThreads, kRegistersPerSM / given) / threads;
  return std::max<int64_t>(1, std::min(mostCtas, ctas));
}

std::optional<RegisterShares>
mlir::nm_sparse::getRegisterShares(int64_t consumers, int64_t producers,
                                   const Chip &chip, bool lean) {
  if (!chip.hasSetMaxRegisters())
    return std::nullopt;
  return shareRegisters(consumers, producers, lean);
}
