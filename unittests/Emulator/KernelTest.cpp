//===- KernelTest.cpp - kernels on the emulator's threads -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

/// Reverses 64 numbers through shared memory.
std::string makeReverse(const std::string &barrier) {
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @reverse(%in: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %last = llvm.mlir.constant(63 : i32) : i32
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %from = llvm.getelementptr %in[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %value = llvm.load %from : !llvm.ptr -> f32
    %slot = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %value, %slot : f32, !llvm.ptr<3>
    )" + barrier +
         R"(
    %other = llvm.sub %last, %tid : i32
    %otherSlot = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %generic = llvm.addrspacecast %otherSlot : !llvm.ptr<3> to !llvm.ptr
    %reversed = llvm.load %generic : !llvm.ptr -> f32
    %to = llvm.getelementptr %out[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %reversed, %to : f32, !llvm.ptr
    llvm.return
  })";
}

std::vector<float> count(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = float(i);
  return values;
}

TEST(Kernel, ReversesThroughSharedMemory) {
  KernelRunner runner(makeReverse("nvvm.barrier0"));
  std::vector<float> numbers = count(64);
  float *in = runner.upload<float>(numbers);
  float *out = runner.allocate<float>(64);
  ASSERT_EQ(runner.run("reverse", makeShape(64, 256), in, out), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 63 - i);
}

TEST(Kernel, FindsTheRaceWithoutABarrier) {
  KernelRunner runner(makeReverse(""));
  std::vector<float> numbers = count(64);
  float *in = runner.upload<float>(numbers);
  float *out = runner.allocate<float>(64);
  std::string fault = runner.run("reverse", makeShape(64, 256), in, out);
  EXPECT_NE(fault.find("nothing wrote"), std::string::npos) << fault;
}

TEST(Kernel, FindsAccessesOutOfBounds) {
  KernelRunner runner(makeReverse("nvvm.barrier0"));
  std::vector<float> numbers = count(64);
  float *in = runner.upload<float>(numbers);
  float *out = runner.allocate<float>(60);
  std::string fault = runner.run("reverse", makeShape(64, 256), in, out);
  EXPECT_NE(fault.find("thread 60: llvm.store"), std::string::npos) << fault;
  EXPECT_NE(fault.find("is 0 bytes behind the end of an allocation of 240 "
                       "bytes"),
            std::string::npos)
      << fault;
  fault = runner.run("reverse", makeShape(64, 128), in, out);
  EXPECT_NE(fault.find("write of 4 bytes at 0x80 is out of bounds: the CTA has "
                       "128 bytes"),
            std::string::npos)
      << fault;
}

TEST(Kernel, FindsReadsOfWhatNothingWrote) {
  KernelRunner runner(makeReverse("nvvm.barrier0"));
  float *in = runner.allocate<float>(64);
  float *out = runner.allocate<float>(64);
  std::string fault = runner.run("reverse", makeShape(64, 256), in, out);
  EXPECT_NE(fault.find("reads what nothing wrote: offset 0"), std::string::npos)
      << fault;
}

/// Each CTA writes a number and counts itself; the last one adds them all up.
std::string makeSum(const std::string &release, const std::string &acquire) {
  return R"(
  llvm.func @sum(%data: !llvm.ptr, %counter: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %slot = llvm.getelementptr %data[%block] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %block, %slot : i32, !llvm.ptr
    )" + release +
         R"(
    %arrived = llvm.atomicrmw add %counter, %one acq_rel : !llvm.ptr, i32
    )" + acquire +
         R"(
    %isLast = llvm.icmp "eq" %arrived, %one : i32
    llvm.cond_br %isLast, ^last, ^end
  ^last:
    %a = llvm.load %data : !llvm.ptr -> i32
    %second = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, i32
    %b = llvm.load %second : !llvm.ptr -> i32
    %sum = llvm.add %a, %b : i32
    llvm.store %sum, %out : i32, !llvm.ptr
    llvm.br ^end
  ^end:
    llvm.return
  })";
}

TEST(Kernel, OrdersCTAsByFencesAndAtomics) {
  auto run = [](const char *release, const char *acquire) {
    KernelRunner runner(makeSum(release, acquire));
    int *data = runner.allocate<int>(2), *out = runner.allocate<int>(1);
    int *counter = runner.upload<int>({0});
    std::string fault =
        runner.run("sum", makeShape(1, 0, 2), data, counter, out);
    EXPECT_TRUE(!fault.empty() || *out == 1);
    return fault;
  };
  const char *fence = "nvvm.memory.barrier <gpu>";
  EXPECT_EQ(run(fence, fence), "");
  for (std::string fault : {run("", fence), run(fence, "")})
    EXPECT_NE(fault.find("no fences and atomic operation order the blocks"),
              std::string::npos)
        << fault;
}

TEST(Kernel, RefusesWhatItDoesNotKnow) {
  KernelRunner runner(R"(
  llvm.func @f() attributes {nvvm.kernel} {
    nvvm.breakpoint
    llvm.return
  })",
                      /*wantError=*/true);
  EXPECT_NE(runner.error.find("'nvvm.breakpoint' op an operation of the nvvm "
                              "dialect of this kind is not emulated"),
            std::string::npos)
      << runner.error;
}

} // namespace
