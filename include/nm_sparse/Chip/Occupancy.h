//===- Occupancy.h - who shares the registers of an SM ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHIP_OCCUPANCY_H
#define NM_SPARSE_CHIP_OCCUPANCY_H

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Chip/RegisterShares.h"
#include <cstdint>
#include <optional>

namespace mlir::nm_sparse {

/// CTAs that the shared memory of one SM holds.
int64_t getCtasBySharedMemory(int64_t sharedBytes, const Chip &chip);

/// Returns the memory that an SM takes from L1 for shared memory, one of a few
/// sizes, if it runs one CTA that needs `sharedBytes`.
int64_t getSharedCarveout(int64_t sharedBytes, const Chip &chip);

/// CTAs that run on one SM at a time, at least one: as many as shared memory
/// allows while the registers left to a thread hold its accumulators and the
/// rest of its state.
int64_t getCtasPerSM(int64_t sharedBytes, int64_t threads, int64_t accumulators,
                     const Chip &chip);

/// CTAs that run on one SM at a time, at least one, where each thread is to
/// have so many registers.
int64_t getCtasByRegisters(int64_t threads, int64_t registers);

/// shareRegisters() where `chip` has setmaxnreg.
std::optional<RegisterShares> getRegisterShares(int64_t consumers,
                                                int64_t producers,
                                                const Chip &chip,
                                                bool lean = false);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHIP_OCCUPANCY_H
