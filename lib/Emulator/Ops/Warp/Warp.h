//===- Warp.h - exchange between the threads of a warp ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_WARP_WARP_H
#define NM_SPARSE_LIB_EMULATOR_OPS_WARP_WARP_H

#include <cstdint>
#include <utility>

namespace mlir::nm_sparse::emulator {

enum class Shuffle { Butterfly, Up, Down, Index };

/// The lane that `lane` reads from, and whether it is inside the segment; it is
/// `lane` itself when it is not. `segments` is the last operand of shfl: the
/// clamp in bits 0-4, the mask of the segment in bits 8-12.
std::pair<unsigned, bool> getShuffleSource(Shuffle kind, unsigned lane,
                                           uint32_t offset, uint32_t segments);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_WARP_WARP_H
