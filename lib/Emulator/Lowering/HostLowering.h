//===- HostLowering.h - kernels for the machine of the host -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_LOWERING_HOSTLOWERING_H
#define NM_SPARSE_LIB_EMULATOR_LOWERING_HOSTLOWERING_H

#include "Memory/Site.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>
#include <vector>

namespace mlir::nm_sparse::emulator {

/// A kernel's signature, as a launch sees it.
struct KernelSignature {
  std::string name;
  /// The name of the host function `void (void **arguments)` that runs one
  /// thread.
  std::string entry;
  SmallVector<unsigned> argumentBytes;
  SmallVector<unsigned> argumentAlignments;
  /// Passed as the address of the argument itself (llvm.byval).
  SmallVector<bool> argumentIsInPlace;
  unsigned maxThreads = 1024; ///< nvvm.maxntid
  unsigned maxRegisters = 0;  ///< nvvm.maxnreg; 0: not declared.
  /// nvvm.cluster_dim, with three entries; empty: launches may choose.
  SmallVector<unsigned, 3> cluster;
};

/// The functions of a gpu.module in the LLVM dialect of the host.
struct HostModule {
  OwningOpRef<ModuleOp> module;
  std::vector<std::unique_ptr<Site>> sites;
  std::vector<KernelSignature> kernels;
  /// Names and bytes of its globals outside of shared memory.
  std::vector<std::pair<std::string, size_t>> globals;
  unsigned staticSharedBytes = 0;
  /// This power of two divides the address and the size of every access.
  unsigned granule = 1;
};

/// Lowers `kernels`, which must outlive the result. Every load, store and
/// atomic operation first calls
///   ptr nmsEmulatorAccess(const Site *, i64 address)
/// for the address on the host, and every operation of the GPU becomes
///   void nmsEmulatorOp(const Site *, ptr operands, ptr results).
/// Emits an error that names the operation on whatever is not emulated.
FailureOr<HostModule> lowerForHost(gpu::GPUModuleOp kernels);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_LOWERING_HOSTLOWERING_H
