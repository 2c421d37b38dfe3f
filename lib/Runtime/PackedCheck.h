//===- PackedCheck.h - what a pack kernel found -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_PACKEDCHECK_H
#define NM_SPARSE_LIB_RUNTIME_PACKEDCHECK_H

#include <cstdint>

namespace nms {

/// The weight that a kernel packed: see nmsRuntimeCheckPacked.
struct PackedCheck {
  int64_t n = 1, m = 1, batch = 1, windows = 1, panels = 1;
};

/// Nonzero, with the sentence of nmsPack recorded, when `found`, the word that
/// the kernel left, says that the weight breaks its pattern.
int checkPacked(int64_t found, const PackedCheck &check);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_PACKEDCHECK_H
