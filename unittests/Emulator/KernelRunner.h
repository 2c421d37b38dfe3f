//===- KernelRunner.h - run a kernel from its text --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_EMULATOR_KERNELRUNNER_H
#define NM_SPARSE_UNITTESTS_EMULATOR_KERNELRUNNER_H

#include "Driver/Kernel.h"
#include "gtest/gtest.h"
#include <cstring>

namespace mlir::nm_sparse::emulator {

/// Kernels given as the operations of a gpu.module, with device memory.
class KernelRunner {
public:
  /// Fails the test when the kernels do not compile, unless `wantError`.
  explicit KernelRunner(const std::string &operations, bool wantError = false) {
    auto created = KernelModule::create(
        "gpu.module @kernels [#nvvm.target<chip = \"sm_90a\">] {\n" +
            operations + "\n}\n",
        memory);
    if (created) {
      module = std::move(*created);
      EXPECT_FALSE(wantError) << "compiled";
      return;
    }
    error = llvm::toString(created.takeError());
    EXPECT_TRUE(wantError) << error;
  }

  /// Device memory that nothing wrote.
  template <typename T>
  T *allocate(size_t count) {
    return static_cast<T *>(memory.allocate(count * sizeof(T)));
  }
  /// Device memory that holds `values`.
  template <typename T>
  T *upload(ArrayRef<T> values) {
    T *pointer = allocate<T>(values.size());
    size_t bytes = values.size() * sizeof(T);
    memory.access(reinterpret_cast<uint64_t>(pointer), bytes,
                  AccessKind::Write);
    std::memcpy(pointer, values.data(), bytes);
    return pointer;
  }

  /// Runs a kernel on one cluster unless `shape` says otherwise, with pointers
  /// and numbers as arguments; the text of the fault, empty for none.
  template <typename... Args>
  std::string run(StringRef kernel, const LaunchShape &shape, Args... args) {
    const Kernel *found = module ? module->lookup(kernel) : nullptr;
    if (!found)
      return "no kernel @" + kernel.str();
    void *arguments[] = {static_cast<void *>(&args)..., nullptr};
    return launch(*found, shape, arguments, memory, "sm_90a", 2);
  }

  GlobalMemory memory;
  std::unique_ptr<KernelModule> module;
  std::string error; ///< The error message of the compilation.
};

/// A shape of `ctas` CTAs in clusters of `clusterSize`, with `threads` each.
inline LaunchShape makeShape(unsigned threads, unsigned sharedBytes = 0,
                             unsigned ctas = 1, unsigned clusterSize = 1) {
  LaunchShape shape;
  shape.block[0] = threads;
  shape.grid[0] = ctas;
  shape.cluster[0] = clusterSize;
  shape.sharedBytes = sharedBytes;
  return shape;
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_UNITTESTS_EMULATOR_KERNELRUNNER_H
