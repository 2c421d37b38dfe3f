//===- Chip.h - what each GPU offers ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_CHIP_H
#define NM_SPARSE_ANALYSIS_CHIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::nm_sparse {

/// Limits and ceilings of one GPU. Rates are per second for the whole chip.
/// Those of sm_90a were measured on an H200; those of the others are scaled
/// from vendor data by the share of its peak that the H200 reaches.
struct Chip {
  llvm::StringRef name;
  llvm::StringRef features; ///< Oldest PTX version that knows the chip.
  int64_t sharedBytes;      ///< Shared memory of one CTA, at most.
  int64_t sharedBytesPerSM; ///< Shared memory of one SM.
  int64_t multiprocessors;
  double ffma;      ///< f32 flops on the CUDA cores.
  double mma;       ///< f16 flops through mma.sync.
  double wgmma;     ///< f16 flops through wgmma; 0 where there is none.
  double l2Bytes;   ///< Bytes from L2.
  double dramBytes; ///< Bytes from device memory.
  double dense;     ///< f16 flops of large dense products of the vendor's.
  double denseFFMA; ///< f32 flops of those.

  /// mbarrier.try_wait, on which producer and consumer warps wait.
  bool hasTryWait() const { return getNumber() >= 90; }
  /// griddepcontrol, with which launches overlap.
  bool hasDependentLaunch() const { return getNumber() >= 90; }
  /// setmaxnreg, which moves registers between warpgroups.
  bool hasSetMaxRegisters() const {
    return hasTryWait() && name.ends_with("a");
  }

private:
  /// The 90 of sm_90a.
  unsigned getNumber() const {
    llvm::StringRef digits = name.drop_front(3);
    unsigned number = 0;
    digits.consumeInteger(10, number);
    return number;
  }
};

/// All chips that are compiled for, oldest first.
llvm::ArrayRef<Chip> getChips();

/// The chip called `name`, or null.
const Chip *findChip(llvm::StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_CHIP_H
