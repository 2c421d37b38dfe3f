//===- Chip.h - what each GPU offers ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHIP_CHIP_H
#define NM_SPARSE_CHIP_CHIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::nm_sparse {

/// Limits and ceilings of one GPU, from its table in share/nm_sparse/gpus.
/// Rates are per second for the whole chip.
struct Chip {
  llvm::StringRef name;     ///< The architecture, such as sm_90a.
  llvm::StringRef gpu;      ///< The GPU that the rates are of, such as h200.
  llvm::StringRef features; ///< Oldest PTX version that knows the chip.
  int64_t sharedBytes;      ///< Shared memory of one CTA, at most.
  int64_t sharedBytesPerSM; ///< Shared memory of one SM.
  int64_t multiprocessors;
  bool isEstimated; ///< Rates are from a data sheet: nobody has measured them.
  double clock;     ///< Clocks of an SM in a second, under load.
  double ffma;      ///< f32 flops on the CUDA cores.
  double mma;       ///< f16 flops through mma.sync.
  double wgmma;     ///< f16 flops through wgmma; 0 where there is none.
  double l2Bytes;   ///< Bytes from L2.
  double dramBytes; ///< Bytes from device memory.
  double dense;     ///< f16 flops of large dense products of the vendor's.
  double denseFFMA; ///< f32 flops of those.

  /// mbarrier.try_wait, on which producer and consumer warps wait.
  bool hasTryWait() const { return getNumber() >= 90; }
  /// CTAs that reach each other's shared memory.
  bool hasClusters() const { return getNumber() >= 90; }
  /// griddepcontrol, with which launches overlap.
  bool hasDependentLaunch() const { return getNumber() >= 90; }
  /// setmaxnreg, which moves registers between warpgroups.
  bool hasSetMaxRegisters() const {
    return hasTryWait() && name.ends_with("a");
  }

  /// The 90 of sm_90a.
  unsigned getNumber() const {
    llvm::StringRef digits = name.drop_front(3);
    unsigned number = 0;
    digits.consumeInteger(10, number);
    return number;
  }
};

/// All chips that are compiled for, oldest first, with the rates of one GPU.
llvm::ArrayRef<Chip> getChips();

/// The chip called `name`, with the rates of `gpu` where that is not empty.
/// Null where there is no such chip, or `gpu` is not one.
const Chip *findChip(llvm::StringRef name, llvm::StringRef gpu = "");

/// The chip of the GPU called `gpu`, or null.
const Chip *findGPU(llvm::StringRef gpu);

/// The GPU whose name is in `device`, which is what the driver calls it; empty
/// when its rates are not known.
llvm::StringRef getGPUOfDevice(llvm::StringRef device);

/// The names of all GPUs whose rates are known.
llvm::SmallVector<llvm::StringRef> getGPUs();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHIP_CHIP_H
