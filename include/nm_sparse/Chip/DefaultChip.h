//===- DefaultChip.h - the chip to compile for ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHIP_DEFAULTCHIP_H
#define NM_SPARSE_CHIP_DEFAULTCHIP_H

namespace mlir::nm_sparse {

/// The GPU that every pass, pipeline and tool compiles for, and that is
/// emulated, unless told otherwise.
inline constexpr char kDefaultChip[] = "sm_90a";

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHIP_DEFAULTCHIP_H
