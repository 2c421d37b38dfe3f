//===- SharedKernel.h - kernels around their operations ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_EMULATOR_SHAREDKERNEL_H
#define NM_SPARSE_UNITTESTS_EMULATOR_SHAREDKERNEL_H

#include "KernelRunner.h"

namespace mlir::nm_sparse::emulator {

/// Kernel @k of two pointers %in and %out around `body`, which finds constants
/// %c0, %c1 ..., the thread's number %tid, dynamic shared memory %shared, and
/// the thread's number in it and in %in and %out: %slot, %from, %to.
inline std::string makeKernel(const std::string &body) {
  std::string constants;
  for (int value :
       {0, 1, 2, 3, 4, 8, 15, 16, 31, 32, 48, 63, 64, 96, 128, 256, 512, 1024})
    constants += "    %c" + std::to_string(value) + " = llvm.mlir.constant(" +
                 std::to_string(value) + " : i32) : i32\n";
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @k(%in: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
)" + constants +
         R"(
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %last = llvm.sub %c63, %tid : i32
    %slot = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %opposite = llvm.getelementptr %shared[%last] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %from = llvm.getelementptr %in[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %to = llvm.getelementptr %out[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %first = llvm.icmp "eq" %tid, %c0 : i32
    %globalIn = llvm.addrspacecast %in : !llvm.ptr to !llvm.ptr<1>
    %globalOut = llvm.addrspacecast %out : !llvm.ptr to !llvm.ptr<1>
)" + body +
         R"(
    llvm.return
  })";
}

/// A test that runs such kernels on numbers from 0 on.
class SharedKernelTest : public ::testing::Test {
protected:
  /// The fault, or the compiler's error; %out has `outputs` numbers.
  std::string run(const std::string &body, const LaunchShape &shape,
                  size_t outputs = 1024) {
    runner = std::make_unique<KernelRunner>(makeKernel(body));
    std::vector<int32_t> numbers(4096);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = i;
    in = runner->upload<int32_t>(numbers);
    out = runner->allocate<int32_t>(outputs);
    return runner->run("k", shape, in, out);
  }

  std::unique_ptr<KernelRunner> runner;
  int32_t *in = nullptr, *out = nullptr;
};

/// Succeeds if a message has `part` in it.
inline ::testing::AssertionResult contains(const std::string &message,
                                           const std::string &part) {
  if (message.find(part) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "no \"" << part << "\" in \"" << message << "\"";
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_UNITTESTS_EMULATOR_SHAREDKERNEL_H
