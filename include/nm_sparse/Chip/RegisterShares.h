//===- RegisterShares.h - registers that warps pass on ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHIP_REGISTERSHARES_H
#define NM_SPARSE_CHIP_REGISTERSHARES_H

#include <cstdint>
#include <optional>

namespace mlir::nm_sparse {

/// Registers of a thread that copies and of one that multiplies, after
/// setmaxnreg.
struct RegisterShares {
  int64_t producer, consumer;
};

/// Registers of a thread when a CTA of so many begins.
int64_t getEntryRegisters(int64_t threads);

/// Returns how the warps of a CTA with so many threads divide the registers on
/// a chip with setmaxnreg, or nothing if they keep their registers. Producers
/// that are `lean` copy whole rows of one tile, or lines of rows that a weight
/// keeps, or leave values to the tensor memory accelerator; others do more.
std::optional<RegisterShares> shareRegisters(int64_t consumers,
                                             int64_t producers, bool lean);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHIP_REGISTERSHARES_H
