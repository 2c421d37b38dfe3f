//===- BarrierTest.cpp - barriers of warps, CTAs and clusters -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

class BarrierTest : public SharedKernelTest {};

const char store[] = "    llvm.store %tid, %slot : i32, !llvm.ptr<3>\n";
const char loadOpposite[] = R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";

TEST_F(BarrierTest, OrdersTheThreadsOfACTA) {
  for (const char *barrier :
       {"nvvm.barrier0", "nvvm.barrier", "nvvm.barrier id = %c3",
        "nvvm.barrier id = %c15 number_of_threads = %c64"}) {
    ASSERT_EQ(
        run(std::string(store) + barrier + loadOpposite, makeShape(64, 256)),
        "");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[i], 63 - i);
  }
}

TEST_F(BarrierTest, FindsRacesOfTheNextRound) {
  // The second store may overtake a load of the first round.
  std::string body = std::string(store) + "nvvm.barrier0" + loadOpposite;
  EXPECT_TRUE(contains(run(body + store, makeShape(64, 256)), "race: "));
  EXPECT_EQ(run(body + "nvvm.barrier0\n" + store, makeShape(64, 256)), "");
}

TEST_F(BarrierTest, ReducesPredicates) {
  std::string body = R"(
    %odd = llvm.and %tid, %c1 : i32
    %count = nvvm.barrier #nvvm.reduction<popc> %odd -> i32
    %all = nvvm.barrier #nvvm.reduction<and> %odd -> i32
    %any = nvvm.barrier #nvvm.reduction<or> %odd -> i32
    %sum = llvm.add %count, %any : i32
    %sum2 = llvm.sub %sum, %all : i32
    llvm.store %sum2, %to : i32, !llvm.ptr
)";
  ASSERT_EQ(run(body, makeShape(64)), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 33);
}

/// One warp produces, the other consumes.
std::string makeHandover(const std::string &arrive, const std::string &sync) {
  return R"(
    %produces = llvm.icmp "ult" %tid, %c32 : i32
    llvm.cond_br %produces, ^produce, ^consume
  ^produce:
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    )" + arrive +
         R"(
    llvm.br ^end
  ^consume:
    )" + sync +
         R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
    llvm.br ^end
  ^end:
)";
}

TEST_F(BarrierTest, HandsOverThroughNamedBarriers) {
  std::string arrive = "nvvm.barrier.arrive id = %c1 number_of_threads = %c64";
  std::string sync = "nvvm.barrier id = %c1 number_of_threads = %c64";
  ASSERT_EQ(run(makeHandover(arrive, sync), makeShape(64, 256)), "");
  for (int i = 32; i < 64; ++i)
    EXPECT_EQ(out[i], 63 - i);

  std::string fault = run(makeHandover("", sync), makeShape(64, 256));
  EXPECT_TRUE(contains(fault, "deadlock"));
  EXPECT_TRUE(contains(fault, "threads 32-63: at nvvm.barrier at"));
  EXPECT_TRUE(contains(fault, "at barrier 1: 32 of 64 threads have arrived"));
  EXPECT_TRUE(contains(fault, "threads 0-31: ended"));

  EXPECT_TRUE(contains(run(makeHandover(arrive, "nvvm.barrier id = %c1 "
                                                "number_of_threads = %c32"),
                           makeShape(64, 256)),
                       "barrier 1 waits for 32 threads here and for 64 where "
                       "others arrived"));
  EXPECT_TRUE(contains(
      run(makeHandover(arrive + "\n" + arrive, sync), makeShape(64, 256)),
      "arrives twice at barrier 1"));
}

TEST_F(BarrierTest, ChecksNumbers) {
  EXPECT_TRUE(contains(run("nvvm.barrier id = %c16", makeShape(64)),
                       "barrier 16 does not exist: a CTA has 0 to 15"));
  EXPECT_TRUE(contains(
      run("nvvm.barrier id = %c1 number_of_threads = %c48", makeShape(64)),
      "barrier 1 waits for 48 threads, which must be a "
      "positive multiple of 32 and at most the 64"));
  EXPECT_TRUE(contains(
      run("nvvm.barrier id = %c1 number_of_threads = %c96", makeShape(64)),
      "at most the 64 threads of the CTA"));
}

TEST_F(BarrierTest, FindsDivergentWarps) {
  std::string body = R"(
    %low = llvm.icmp "ult" %tid, %c16 : i32
    llvm.cond_br %low, ^one, ^other
  ^one:
    nvvm.barrier0
    llvm.br ^end
  ^other:
    nvvm.barrier0
    llvm.br ^end
  ^end:
)";
  std::string fault = run(body, makeShape(32));
  EXPECT_TRUE(contains(fault, "thread 16: nvvm.barrier0 at"));
  EXPECT_TRUE(contains(fault, "divergent: in its place other threads of warp "
                              "0 execute nvvm.barrier0 at"));
}

TEST_F(BarrierTest, DoesNotWaitForThreadsThatEnded) {
  std::string body = R"(
    %high = llvm.icmp "uge" %tid, %c48 : i32
    llvm.cond_br %high, ^end, ^stay
  ^stay:
    nvvm.barrier0
    nvvm.barrier id = %c1 number_of_threads = %c64
    llvm.br ^end
  ^end:
)";
  EXPECT_EQ(run(body, makeShape(64)), "");
}

TEST_F(BarrierTest, OrdersTheThreadsOfAWarp) {
  std::string body = R"(
    %mask = llvm.mlir.constant(-1 : i32) : i32
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    nvvm.bar.warp.sync %mask : i32
    %other = llvm.xor %tid, %c1 : i32
    %place = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %place : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";
  ASSERT_EQ(run(body, makeShape(64, 256)), "");
  EXPECT_EQ(out[33], 32);
  std::string across = R"(
    %mask = llvm.mlir.constant(-1 : i32) : i32
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    nvvm.bar.warp.sync %mask : i32
)" + std::string(loadOpposite);
  EXPECT_NE(run(across, makeShape(64, 256)), "");
}

/// Writes into the next CTA of a cluster of two, and reads what came.
std::string makeExchange(const std::string &barrier) {
  return R"(
    %next = llvm.sub %c1, %rank : i32
    %there = nvvm.mapa %slot, %next : !llvm.ptr<3> -> !llvm.ptr<7>
    %hundred = llvm.mul %rank, %c1024 : i32
    %number = llvm.add %hundred, %tid : i32
    llvm.store %number, %there : i32, !llvm.ptr<7>
    )" + barrier +
         R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    %block = llvm.mul %rank, %c64 : i32
    %index = llvm.add %block, %tid : i32
    %place = llvm.getelementptr %out[%index] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %value, %place : i32, !llvm.ptr
    nvvm.cluster.arrive
    nvvm.cluster.wait
)";
}

TEST_F(BarrierTest, OrdersTheCTAsOfACluster) {
  LaunchShape shape = makeShape(64, 256, 2, 2);
  for (const char *barrier :
       {"nvvm.cluster.arrive\n nvvm.cluster.wait",
        "nvvm.cluster.arrive {aligned}\n nvvm.cluster.wait {aligned}",
        "llvm.fence acq_rel\n nvvm.cluster.arrive.relaxed\n"
        "nvvm.cluster.wait"}) {
    ASSERT_EQ(run(makeExchange(barrier), shape), "") << barrier;
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(out[i], 1024 + 63 - i);
      EXPECT_EQ(out[64 + i], 63 - i);
    }
  }
  EXPECT_TRUE(contains(run(makeExchange("nvvm.cluster.arrive.relaxed\n"
                                        "nvvm.cluster.wait"),
                           shape),
                       "race: reads 4 bytes of shared memory"));
  EXPECT_TRUE(contains(run(makeExchange("nvvm.barrier0"), shape),
                       "which thread 63 of CTA 1 of the cluster writes"));
}

TEST_F(BarrierTest, ChecksTheUseOfTheClusterBarrier) {
  LaunchShape shape = makeShape(32, 0, 2, 2);
  EXPECT_TRUE(
      contains(run("nvvm.cluster.wait", shape), "without having arrived"));
  EXPECT_TRUE(contains(run("nvvm.cluster.arrive\n nvvm.cluster.arrive", shape),
                       "arrives twice at the barrier of the cluster"));
  std::string fault = run(R"(
    %zeroth = llvm.icmp "eq" %rank, %c0 : i32
    llvm.cond_br %zeroth, ^wait, ^other
  ^wait:
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.br ^end
  ^other:
    nvvm.barrier id = %c1 number_of_threads = %c32
    llvm.br ^end
  ^end:
)",
                          shape);
  EXPECT_EQ(fault, "");
}

TEST_F(BarrierTest, FindsAccessesThatOutliveTheirCTA) {
  auto makeBody = [](const std::string &end) {
    return R"(
    %zeroth = llvm.icmp "eq" %rank, %c0 : i32
    %there = nvvm.mapa %slot, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.cluster.arrive
    llvm.cond_br %zeroth, ^wait, ^write
  ^write:
    llvm.store %tid, %there : i32, !llvm.ptr<7>
    llvm.br ^wait
  ^wait:
    nvvm.cluster.wait
)" + end;
  };
  EXPECT_TRUE(
      contains(run(makeBody(""), makeShape(32, 256, 2, 2)),
               "block (0, 0, 0): it ends while thread 0 of CTA 1 of the "
               "cluster writes its shared memory at 0x0 by llvm.store "
               "at"));
  EXPECT_EQ(run(makeBody("nvvm.cluster.arrive\n nvvm.cluster.wait\n"),
                makeShape(32, 256, 2, 2)),
            "");
}

TEST_F(BarrierTest, FindsAccessesToACTAThatEnded) {
  std::string body = R"(
    %zeroth = llvm.icmp "eq" %rank, %c0 : i32
    llvm.cond_br %zeroth, ^end, ^late
  ^late:
    %there = nvvm.mapa %slot, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %tid, %there : i32, !llvm.ptr<7>
    llvm.br ^end
  ^end:
)";
  EXPECT_TRUE(contains(run(body, makeShape(32, 256, 2, 2)),
                       "of CTA 0 of the cluster, which has ended"));
  EXPECT_TRUE(contains(run("%there = nvvm.mapa %slot, %c2 : !llvm.ptr<3> -> "
                           "!llvm.ptr<7>",
                           makeShape(32, 256, 2, 2)),
                       "rank 2 does not exist: the cluster has 2 CTAs"));
}

} // namespace
