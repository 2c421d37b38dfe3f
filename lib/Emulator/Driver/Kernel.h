//===- Kernel.h - compiled kernels and their launches -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_DRIVER_KERNEL_H
#define NM_SPARSE_LIB_EMULATOR_DRIVER_KERNEL_H

#include "Lowering/HostLowering.h"
#include "Memory/Memory.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include <mutex>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace mlir::nm_sparse::emulator {

class BankTable;
class KernelModule;

/// One kernel, which its first launch compiles for the host.
class Kernel {
public:
  StringRef getName() const { return signature.name; }
  ArrayRef<unsigned> getArgumentBytes() const {
    return signature.argumentBytes;
  }
  ArrayRef<unsigned> getArgumentAlignments() const {
    return signature.argumentAlignments;
  }
  /// Three extents that every launch has; empty if launches may choose.
  ArrayRef<unsigned> getCluster() const { return signature.cluster; }
  unsigned getMaxThreads() const { return signature.maxThreads; }
  unsigned getStaticSharedBytes() const;

private:
  friend class KernelModule;
  friend struct KernelLaunch;
  KernelSignature signature;
  KernelModule *module = nullptr;
};

/// The kernels of one gpu.module.
class KernelModule {
public:
  /// Parses the text of a gpu.module in the nvvm dialect and lowers it for the
  /// host. An error carries the compiler's messages. `memory` outlives the
  /// result; the module's constants become part of it.
  static llvm::Expected<std::unique_ptr<KernelModule>>
  create(StringRef text, GlobalMemory &memory);
  ~KernelModule();

  /// Null when there is no kernel of this name.
  const Kernel *lookup(StringRef name) const;

private:
  friend class Kernel;
  friend struct KernelLaunch;
  using Entry = void (*)(void **arguments);
  KernelModule();

  /// The code of `kernel`, one of this module.
  llvm::Expected<Entry> getEntry(const Kernel &kernel);
  llvm::Expected<ExecutionEngine *> compile(ModuleOp module);
  llvm::Error findEntry(ExecutionEngine &engine, const Kernel &kernel);
  llvm::Error placeGlobals(GlobalMemory &memory);

  MLIRContext context;
  OwningOpRef<ModuleOp> original; ///< The code that sites point into.
  HostModule host;
  std::vector<std::unique_ptr<Kernel>> kernels;

  std::mutex mutex; ///< Guards the rest: several threads may start kernels.
  std::vector<std::unique_ptr<ExecutionEngine>> engines;
  llvm::StringMap<Entry> entries; ///< By the names of kernels.
};

struct LaunchShape {
  unsigned cluster[3] = {1, 1, 1};
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
};

/// Runs `kernel` to its end. `arguments` points at each argument's value;
/// `jobs` threads of the host are used, 0: one for each core. With `lastFirst`
/// they take the last CTAs first. Adds how it uses the banks of shared memory
/// to `banks`, unless that is null. Returns the text of the first fault, empty
/// when there was none.
std::string launch(const Kernel &kernel, const LaunchShape &shape,
                   void **arguments, GlobalMemory &memory, StringRef chip,
                   unsigned jobs, bool lastFirst = false,
                   BankTable *banks = nullptr);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_DRIVER_KERNEL_H
