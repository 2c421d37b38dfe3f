//===- DefaultCodeBytes.h - how much code a weight may become ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_DEFAULTCODEBYTES_H
#define NM_SPARSE_SUPPORT_DEFAULTCODEBYTES_H

#include <cstdint>

namespace mlir::nm_sparse {

/// Bytes of instructions at most that a constant weight becomes, unless passes
/// and tools are told otherwise: ptxas takes 15 seconds for them.
inline constexpr int64_t kDefaultMaxCodeBytes = 3 << 20;

/// Bytes of one instruction of a GPU since sm_70.
inline constexpr int64_t kInstructionBytes = 16;

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_DEFAULTCODEBYTES_H
