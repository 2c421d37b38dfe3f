//===- BulkCopyTest.cpp - cp.async.bulk -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

class BulkCopyTest : public SharedKernelTest {};

const char wait[] = "\n nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : "
                    "!llvm.ptr<3>, i32, i32\n";
const char load[] = R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    %block = llvm.mul %rank, %c64 : i32
    %index = llvm.add %block, %tid : i32
    %place = llvm.getelementptr %out[%index] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %value, %place : i32, !llvm.ptr
)";
const char fenceInit[] = "\n nvvm.fence.mbarrier.init\n";
const char expect[] =
    "\n %s = nvvm.mbarrier.arrive.expect_tx %mbar, %c256 : !llvm.ptr<3>, i32 "
    "-> i64\n";
const char copy[] =
    "\n nvvm.cp.async.bulk.shared.cluster.global %shared, %globalIn, %mbar, "
    "%c256 : !llvm.ptr<3>, !llvm.ptr<1>\n";

/// Thread 0 executes `init`, and after `barrier` `once`; then all `body`.
std::string makeLoad(const std::string &init, const std::string &once,
                     const std::string &body,
                     const std::string &barrier = "nvvm.barrier0") {
  return R"(
    %mbar = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    llvm.cond_br %first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %mbar, %c1 : !llvm.ptr<3>, i32
    )" + init +
         R"(
    llvm.br ^ready
  ^ready:
    )" + barrier +
         R"(
    llvm.cond_br %first, ^once, ^all
  ^once:
    )" + once +
         R"(
    llvm.br ^all
  ^all:
    )" + body;
}

TEST_F(BulkCopyTest, LoadsOntoAnMBarrier) {
  LaunchShape shape = makeShape(64, 1032);
  for (const char *fence : {fenceInit, "nvvm.fence.proxy {kind = "
                                       "#nvvm.proxy_kind<async>}"}) {
    ASSERT_EQ(run(makeLoad(fence, std::string(expect) + copy,
                           std::string(wait) + load),
                  shape),
              "");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[i], 63 - i);
  }
  EXPECT_TRUE(contains(
      run(makeLoad("", std::string(expect) + copy, std::string(wait) + load),
          shape),
      "the async proxy uses the mbarrier at 0x400, but no "
      "fence.mbarrier.init or fence.proxy.async"));
  EXPECT_TRUE(contains(
      run(makeLoad(fenceInit, std::string(expect) + copy, load), shape),
      "which a bulk copy of thread 0 writes by "
      "nvvm.cp.async.bulk.shared.cluster.global at"));
  EXPECT_TRUE(contains(
      run(makeLoad(fenceInit, expect, std::string(wait) + load), shape),
      "256 bytes of copies are missing"));
  std::string arrive = "%s = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64";
  EXPECT_TRUE(contains(
      run(makeLoad(fenceInit, copy + arrive, std::string(wait) + load), shape),
      "256 bytes came that no expect_tx announced"));
}

TEST_F(BulkCopyTest, OrdersWritesOfTheTwoProxies) {
  // Bytes that were stored are overwritten by a copy.
  std::string store = "llvm.store %tid, %slot : i32, !llvm.ptr<3>\n";
  std::string fence =
      "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
      "space = #nvvm.shared_space<cta>}\n";
  std::string once = std::string(expect) + copy;
  std::string all = std::string(wait) + load;
  LaunchShape shape = makeShape(64, 1032);
  EXPECT_TRUE(contains(
      run(makeLoad(fenceInit, once, all, store + "nvvm.barrier0"), shape),
      "no fence.proxy.async lets the async proxy see the "
      "write"));
  EXPECT_EQ(run(makeLoad(fenceInit, once, all, store + fence + "nvvm.barrier0"),
                shape),
            "");
}

TEST_F(BulkCopyTest, OrdersReadsOfTheGenericProxy) {
  // Bytes that were loaded are overwritten by the next copy.
  auto makeNext = [](const std::string &readers, const std::string &copier) {
    return std::string(wait) + load + readers + R"(
    nvvm.barrier0
    llvm.cond_br %first, ^next, ^last
  ^next:
    )" + copier +
           R"(
    %next = nvvm.mbarrier.arrive.expect_tx %mbar, %c256 : !llvm.ptr<3>, i32 -> i64
    )" + copy +
           R"(
    llvm.br ^last
  ^last:
    nvvm.mbarrier.try_wait.parity %mbar, %c1, %ticks : !llvm.ptr<3>, i32, i32
    )";
  };
  std::string fence =
      "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
      "space = #nvvm.shared_space<cta>}\n";
  std::string once = std::string(expect) + copy;
  LaunchShape shape = makeShape(64, 1032);
  EXPECT_TRUE(
      contains(run(makeLoad(fenceInit, once, makeNext("", "")), shape),
               "no fence.proxy.async keeps the async proxy behind the read"));
  EXPECT_EQ(run(makeLoad(fenceInit, once, makeNext("", fence)), shape), "");
  EXPECT_EQ(run(makeLoad(fenceInit, once, makeNext(fence, "")), shape), "");
}

TEST_F(BulkCopyTest, ChecksAddressesAndSizes) {
  auto makeCopy = [](const std::string &offset, const std::string &bytes) {
    return R"(
    %bytes = llvm.mlir.constant()" +
           bytes + R"( : i32) : i32
    %target = llvm.getelementptr %shared[)" +
           offset + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.bulk.shared.cluster.global %target, %globalIn, %mbar, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
)";
  };
  LaunchShape shape = makeShape(1, 1032);
  EXPECT_TRUE(contains(run(makeLoad(fenceInit, makeCopy("0", "24"), ""), shape),
                       "its size is 24 bytes, which must be a multiple of 16"));
  EXPECT_TRUE(contains(run(makeLoad(fenceInit, makeCopy("8", "32"), ""), shape),
                       "misaligned write of 32 bytes of shared memory at 0x8"));
  EXPECT_TRUE(
      contains(run(makeLoad(fenceInit, makeCopy("1008", "32"), ""), shape),
               "write of 32 bytes at 0x3f0 is out of bounds"));
  EXPECT_TRUE(
      contains(run(makeLoad(fenceInit, makeCopy("0", "16400"), ""), shape),
               "reach past the end of an allocation of 16384 bytes"));
}

TEST_F(BulkCopyTest, SendsToSeveralCTAs) {
  // CTA 0 loads for both; each waits on an mbarrier of its own.
  std::string once = std::string(expect) + R"(
    %sends = llvm.icmp "eq" %rank, %c0 : i32
    llvm.cond_br %sends, ^send, ^all
  ^send:
    %mask = llvm.mlir.constant(3 : i16) : i16
    %target = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.shared.cluster.global %target, %globalIn, %mbar, %c256 multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
)";
  std::string barrier = "nvvm.cluster.arrive.relaxed\n nvvm.cluster.wait";
  std::string leave = "nvvm.cluster.arrive\n nvvm.cluster.wait";
  LaunchShape shape = makeShape(64, 1032, 2, 2);
  ASSERT_EQ(
      run(makeLoad(fenceInit, once, std::string(wait) + load + leave, barrier),
          shape),
      "");
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], 63 - i % 64);
  EXPECT_TRUE(
      contains(run(makeLoad(fenceInit, once, std::string(wait) + load + leave,
                            "nvvm.barrier0"),
                   shape),
               "of CTA 1 of the cluster"));
  std::string wide = once;
  wide.replace(wide.find("constant(3"), 10, "constant(7");
  EXPECT_TRUE(contains(
      run(makeLoad(fenceInit, wide, std::string(wait) + load + leave, barrier),
          shape),
      "its multicast mask is 0x7, which must name at least "
      "one CTA and only the 2 of the cluster"));
}

TEST_F(BulkCopyTest, CopiesToAnotherCTA) {
  // CTA 0 sends what its threads stored to CTA 1.
  auto makeCopy = [](const std::string &fence, const std::string &mbarrier) {
    return makeLoad(fenceInit, expect,
                    R"(
    %sends = llvm.icmp "eq" %rank, %c0 : i32
    llvm.cond_br %sends, ^store, ^receive
  ^store:
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    )" + fence + R"(
    nvvm.barrier0
    llvm.cond_br %first, ^send, ^end
  ^send:
    %target = nvvm.mapa %shared, %c1 : !llvm.ptr<3> -> !llvm.ptr<7>
    %far = nvvm.mapa %mbar, %c1 : !llvm.ptr<3> -> !llvm.ptr<7>
    %there = llvm.addrspacecast %far : !llvm.ptr<7> to !llvm.ptr<3>
    nvvm.cp.async.bulk.shared.cluster.shared.cta %target, %shared, )" +
                        mbarrier +
                        R"(, %c256 : !llvm.ptr<7>, !llvm.ptr<3>
    llvm.br ^end
  ^receive:
)" + wait + load + R"(
    llvm.br ^end
  ^end:
    nvvm.cluster.arrive
    nvvm.cluster.wait
)",
                    "nvvm.cluster.arrive.relaxed\n nvvm.cluster.wait");
  };
  LaunchShape shape = makeShape(64, 1032, 2, 2);
  std::string fence = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}";
  ASSERT_EQ(run(makeCopy(fence, "%there"), shape), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[64 + i], 63 - i);
  EXPECT_TRUE(contains(run(makeCopy("", "%there"), shape),
                       "no fence.proxy.async lets the async proxy see the "
                       "write"));
  EXPECT_TRUE(contains(run(makeCopy(fence, "%mbar"), shape),
                       "the mbarrier must be in the CTA of the destination"));
}

/// All threads store, thread 0 copies that out, then all execute `after`.
std::string makeStore(const std::string &fence, const std::string &wait,
                      const std::string &after) {
  return R"(
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    )" + fence +
         R"(
    nvvm.barrier0
    llvm.cond_br %first, ^copy, ^after
  ^copy:
    nvvm.cp.async.bulk.global.shared.cta %globalOut, %shared, %c256 : !llvm.ptr<1>, !llvm.ptr<3>
    )" + wait +
         R"(
    llvm.br ^after
  ^after:
    nvvm.barrier0
)" + after;
}

TEST_F(BulkCopyTest, StoresInGroups) {
  LaunchShape shape = makeShape(64, 256);
  std::string fence = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}";
  std::string commit = "nvvm.cp.async.bulk.commit.group\n";
  std::string read = commit + "nvvm.cp.async.bulk.wait_group 0 {read}\n";
  std::string whole = commit + "nvvm.cp.async.bulk.wait_group 0\n";
  std::string store = "llvm.store %tid, %slot : i32, !llvm.ptr<3>\n";
  std::string readBack = R"(
    %back = llvm.load %to : !llvm.ptr -> i32
    llvm.store %back, %slot : i32, !llvm.ptr<3>
)";
  ASSERT_EQ(run(makeStore(fence, read, store), shape), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i);
  EXPECT_TRUE(contains(run(makeStore("", read, store), shape),
                       "no fence.proxy.async lets the async proxy see the "
                       "write"));
  EXPECT_TRUE(contains(run(makeStore(fence, commit, store), shape),
                       "which a bulk copy of thread 0 reads by "
                       "nvvm.cp.async.bulk.global.shared.cta at"));
  EXPECT_TRUE(contains(
      run(makeStore(fence, commit + "nvvm.cp.async.bulk.wait_group 1 {read}\n",
                    store),
          shape),
      "race: writes 4 bytes of shared memory"));
  EXPECT_EQ(run(makeStore(fence, whole, readBack), shape), "");
  EXPECT_TRUE(contains(run(makeStore(fence, read, readBack), shape),
                       "race: reads 4 bytes of global memory"));
}

TEST_F(BulkCopyTest, FindsCopiesThatOutliveTheirCTA) {
  std::string fence = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}";
  EXPECT_TRUE(
      contains(run(makeStore(fence, "nvvm.cp.async.bulk.commit.group", ""),
                   makeShape(64, 256)),
               "it ends while a bulk copy of thread 0 reads its shared "
               "memory at 0x0 by nvvm.cp.async.bulk.global.shared.cta "
               "at"));
  EXPECT_TRUE(contains(run(makeLoad(fenceInit, std::string(expect) + copy, ""),
                           makeShape(64, 1032)),
                       "it ends while a bulk copy of thread 0 writes its "
                       "shared memory at 0x0 by "
                       "nvvm.cp.async.bulk.shared.cluster.global at"));
}

TEST_F(BulkCopyTest, PrefetchesAndClears) {
  EXPECT_EQ(run(R"(
    nvvm.cp.async.bulk.prefetch %globalIn, %c256 : !llvm.ptr<1>
    %bytes = llvm.mlir.constant(256 : i64) : i64
    llvm.cond_br %first, ^clear, ^then
  ^clear:
    nvvm.st.bulk %shared, size = %bytes : !llvm.ptr<3>
    llvm.br ^then
  ^then:
    nvvm.barrier0
    %value = llvm.load %slot : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)",
                makeShape(64, 256)),
            "");
  EXPECT_EQ(out[63], 0);
  EXPECT_TRUE(contains(run(R"(
    %far = llvm.getelementptr %globalIn[16384] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    nvvm.cp.async.bulk.prefetch %far, %c256 : !llvm.ptr<1>
)",
                           makeShape(1)),
                       "are not all device memory"));
}

} // namespace
