//===- AsyncCopyTest.cpp - cp.async ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

class AsyncCopyTest : public SharedKernelTest {};

const char copy[] = R"(
    %source = llvm.addrspacecast %from : !llvm.ptr to !llvm.ptr<1>
    nvvm.cp.async.shared.global %slot, %source, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
)";
const char load[] = R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";
const char commit[] = "\n nvvm.cp.async.commit.group\n";
const char wait[] = "\n nvvm.cp.async.wait.group 0\n";
const char barrier[] = "\n nvvm.barrier0\n";

TEST_F(AsyncCopyTest, CopiesUntilAllGroupsArrived) {
  LaunchShape shape = makeShape(64, 256);
  ASSERT_EQ(run(std::string(copy) + commit + wait + barrier + load, shape), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 63 - i);
  for (const std::string &body :
       {std::string(copy) + commit + barrier + load,
        std::string(copy) + commit + "nvvm.cp.async.wait.group 1" + barrier +
            load,
        std::string(copy) + wait + commit + barrier + load,
        std::string(copy) + commit + barrier + wait + load})
    EXPECT_TRUE(contains(run(body, shape),
                         "which a cp.async of thread 63 writes by "
                         "nvvm.cp.async.shared.global at"))
        << body;
  EXPECT_TRUE(contains(run(std::string(copy) + commit + wait + load, shape),
                       "nothing wrote those"));
}

TEST_F(AsyncCopyTest, WaitsForOldGroupsOnly) {
  std::string second = R"(
    %slot2 = llvm.getelementptr %slot[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    nvvm.cp.async.shared.global %slot2, %source, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
)";
  std::string body = std::string(copy) + commit + second + commit +
                     "nvvm.cp.async.wait.group 1" + barrier;
  EXPECT_EQ(run(body + load, makeShape(64, 512)), "");
  EXPECT_TRUE(contains(run(body + R"(
    %value = llvm.load %slot2 : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)",
                           makeShape(64, 512)),
                       "which a cp.async of thread 0 writes"));
}

TEST_F(AsyncCopyTest, FillsWithZeros) {
  // Odd threads read nothing, from an address that does not exist.
  std::string body = R"(
    %even = llvm.and %tid, %c1 : i32
    %isOdd = llvm.icmp "ne" %even, %c0 : i32
    %none = llvm.mlir.zero : !llvm.ptr<1>
    %there = llvm.addrspacecast %from : !llvm.ptr to !llvm.ptr<1>
    %source = llvm.select %isOdd, %none, %there : i1, !llvm.ptr<1>
    %four = llvm.mlir.constant(4 : i32) : i32
    %bytes = llvm.select %isOdd, %c0, %four : i1, i32
    nvvm.cp.async.shared.global %slot, %source, 4, cache = ca, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
)";
  ASSERT_EQ(run(body + commit + wait + barrier + load, makeShape(64, 256)), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[63 - i], i % 2 ? 0 : i);
}

/// Loads after a phase of an mbarrier for `count` arrivals, in which each
/// thread does `work`.
std::string makePhase(const std::string &count, const std::string &work) {
  return R"(
    %mbar = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    llvm.cond_br %first, ^first, ^then
  ^first:
    nvvm.mbarrier.init %mbar, )" +
         count + R"( : !llvm.ptr<3>, i32
    llvm.br ^then
  ^then:
    nvvm.barrier0
)" + work +
         R"(
    nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : !llvm.ptr<3>, i32, i32
)" + load;
}
const char copiesArrive[] =
    "\n nvvm.cp.async.mbarrier.arrive %mbar {noinc = true} : !llvm.ptr<3>\n";
const char copiesArriveExtra[] =
    "\n nvvm.cp.async.mbarrier.arrive %mbar : !llvm.ptr<3>\n";
const char arrive[] =
    "\n %state = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64\n";

TEST_F(AsyncCopyTest, CompletesOnMBarriers) {
  LaunchShape shape = makeShape(64, 1032);
  const std::string copies = copy;
  ASSERT_EQ(run(makePhase("%c64", copies + copiesArrive), shape), "");
  EXPECT_EQ(out[0], 63);
  EXPECT_EQ(run(makePhase("%c64", copies + copiesArriveExtra + arrive), shape),
            "");
  EXPECT_TRUE(
      contains(run(makePhase("%c64", copies + copiesArriveExtra), shape),
               "0 of 64 arrivals"));
  EXPECT_TRUE(contains(run(makePhase("%c64", copies + arrive), shape),
                       "which a cp.async of thread 0 writes"));
}

TEST_F(AsyncCopyTest, DoesNotReleaseStoresByCopies) {
  LaunchShape shape = makeShape(64, 1032);
  const std::string store = "\n llvm.store %tid, %slot : i32, !llvm.ptr<3>\n";
  EXPECT_TRUE(contains(run(makePhase("%c64", store + copiesArrive), shape),
                       "which thread 0 writes by llvm.store at"));
  ASSERT_EQ(run(makePhase("%c128", store + copiesArrive + arrive), shape), "");
  EXPECT_EQ(out[0], 63);
}

TEST_F(AsyncCopyTest, ChecksAddresses) {
  auto makeBody = [](const std::string &target, const std::string &source) {
    return R"(
    %target = llvm.getelementptr %shared[)" +
           target + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %source = llvm.getelementptr %globalIn[)" +
           source + R"(] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    nvvm.cp.async.shared.global %target, %source, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
)";
  };
  LaunchShape shape = makeShape(1, 256);
  EXPECT_EQ(run(makeBody("240", "16"), shape), "");
  EXPECT_TRUE(contains(run(makeBody("8", "16"), shape),
                       "misaligned write of 16 bytes of shared memory at 0x8, "
                       "which must be a multiple of 16"));
  EXPECT_TRUE(contains(run(makeBody("0", "8"), shape),
                       "misaligned read of 16 bytes of global memory"));
  EXPECT_TRUE(contains(run(makeBody("256", "16"), shape),
                       "write of 16 bytes at 0x100 is out of bounds"));
  EXPECT_TRUE(contains(run(makeBody("0", "16384"), shape),
                       "0 bytes behind the end of an allocation"));
}

} // namespace
