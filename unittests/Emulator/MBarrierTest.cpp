//===- MBarrierTest.cpp - mbarriers ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

class MBarrierTest : public SharedKernelTest {
protected:
  /// Thread 0 executes `once` before `barrier`, then all execute `body`. The
  /// mbarrier %mbar is 8 bytes at 1024, behind what %slot points into.
  std::string runAfter(const std::string &once, const std::string &body,
                       const LaunchShape &shape = makeShape(64, 1032),
                       const std::string &barrier = "nvvm.barrier0") {
    return run(R"(
    %mbar = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    llvm.cond_br %first, ^first, ^then
  ^first:
    )" + once + R"(
    llvm.br ^then
  ^then:
    )" + barrier + body,
               shape);
  }
};

const char init64[] = "nvvm.mbarrier.init %mbar, %c64 : !llvm.ptr<3>, i32";
const char wait0[] =
    "nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : !llvm.ptr<3>, i32, "
    "i32\n";
const char wait1[] =
    "nvvm.mbarrier.try_wait.parity %mbar, %c1, %ticks : !llvm.ptr<3>, i32, "
    "i32\n";
const char arrive[] =
    "%state = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64\n";
const char store[] = "\n llvm.store %tid, %slot : i32, !llvm.ptr<3>\n";
const char load[] = R"(
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";

/// Tries until `tryWait`, whose result is %ok, is true.
std::string untilTrue(const std::string &tryWait) {
  return "llvm.br ^try\n^try:\n" + tryWait +
         "llvm.cond_br %ok, ^ended, ^try\n^ended:\n";
}
const char tryState[] =
    "%ok = nvvm.mbarrier.try_wait %mbar, %state : !llvm.ptr<3>, i64 -> i1\n";
const char tryParity[] =
    "%ok = nvvm.mbarrier.try_wait %mbar, %c0 : !llvm.ptr<3>, i32 -> i1\n";

TEST_F(MBarrierTest, OrdersArrivalsBeforeWaits) {
  const char testUntil[] = R"(
    llvm.br ^poll
  ^poll:
    %done = nvvm.mbarrier.test.wait %mbar, %state : !llvm.ptr<3>, i64 -> i1
    llvm.cond_br %done, ^after, ^poll
  ^after:
)";
  for (const std::string &wait : {std::string(wait0), std::string(testUntil),
                                  untilTrue(tryState), untilTrue(tryParity)}) {
    ASSERT_EQ(runAfter(init64, std::string(store) + arrive + wait + load), "")
        << wait;
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[i], 63 - i);
  }
  EXPECT_TRUE(contains(runAfter(init64, std::string(store) + arrive + load),
                       "reads 4 bytes of shared memory"));
  // The phase before the first has completed.
  EXPECT_TRUE(
      contains(runAfter(init64, std::string(store) + arrive + wait1 + load),
               "reads 4 bytes of shared memory"));
}

/// On hardware a try_wait may give up, which here it does before it waits.
TEST_F(MBarrierTest, FindsWaitsWhoseResultIsIgnored) {
  for (const char *wait : {tryState, tryParity})
    EXPECT_TRUE(
        contains(runAfter(init64, std::string(store) + arrive + wait + load),
                 "reads 4 bytes of shared memory"))
        << wait;
  // Nor is one more try enough.
  std::string again = std::string(tryState) +
                      "llvm.cond_br %ok, ^ended, ^again\n^again:\n"
                      "%1 = nvvm.mbarrier.try_wait %mbar, %state : "
                      "!llvm.ptr<3>, i64 -> i1\n"
                      "llvm.br ^ended\n^ended:\n";
  EXPECT_TRUE(
      contains(runAfter(init64, std::string(store) + arrive + again + load),
               "reads 4 bytes of shared memory"));
  // Behind a barrier the phase has ended, and hardware gives true at once.
  std::string behind = "nvvm.barrier0\n" + std::string(tryState) + R"(
    %number = llvm.zext %ok : i1 to i32
    llvm.store %number, %to : i32, !llvm.ptr
)";
  ASSERT_EQ(runAfter(init64, arrive + behind), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 1);
}

TEST_F(MBarrierTest, RelaxedArrivalsNeedAFence) {
  std::string relaxed = "%state = nvvm.mbarrier.arrive %mbar {relaxed = true} "
                        ": !llvm.ptr<3> -> i64\n";
  EXPECT_TRUE(contains(runAfter(init64, store + relaxed + wait0 + load),
                       "race: reads 4 bytes"));
  EXPECT_EQ(runAfter(init64, store + std::string("llvm.fence acq_rel\n") +
                                 relaxed + wait0 + load),
            "");
}

TEST_F(MBarrierTest, CountsArrivals) {
  std::string many = "%state = nvvm.mbarrier.arrive %mbar, %c2 : "
                     "!llvm.ptr<3> -> i64\n";
  std::string fault = runAfter(
      "nvvm.mbarrier.init %mbar, %c63 : !llvm.ptr<3>, i32", store + many);
  EXPECT_TRUE(contains(fault, "arrives 2 times at the mbarrier at 0x400, "
                              "whose phase 0 had 1 arrivals pending"));

  fault = runAfter("nvvm.mbarrier.init %mbar, %c96 : !llvm.ptr<3>, i32",
                   std::string(store) + arrive + wait0);
  EXPECT_TRUE(contains(fault, "deadlock"));
  EXPECT_TRUE(contains(fault, "for the end of phase 0 of the mbarrier at "
                              "0x400: 64 of 96 arrivals"));

  EXPECT_TRUE(contains(
      runAfter("nvvm.mbarrier.init %mbar, %c0 : !llvm.ptr<3>, i32", ""),
      "initializes an mbarrier for 0 arrivals, which must be "
      "1 to 1048575"));
}

/// The first of the threads writes what all read, and it is the first to
/// arrive: the phase ends after it and before the last thread, whose arrival no
/// reader needs.
TEST_F(MBarrierTest, FindsArrivalsThatAPhaseDoesNotCount) {
  const char write[] = R"(
    llvm.cond_br %first, ^write, ^arrive
  ^write:
    llvm.store %tid, %shared : i32, !llvm.ptr<3>
    llvm.br ^arrive
  ^arrive:
)";
  const char read[] = R"(
    %value = llvm.load %shared : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";
  std::string body = std::string(write) + arrive + wait0 + read;
  EXPECT_EQ(runAfter(init64, body), "");
  EXPECT_TRUE(contains(
      runAfter("nvvm.mbarrier.init %mbar, %c63 : !llvm.ptr<3>, i32", body),
      "arrives at the mbarrier at 0x400 in phase 1, and nothing orders that "
      "after the end of phase 0, which came after 63 arrivals without this "
      "one"));
}

TEST_F(MBarrierTest, OrdersArrivalsOfNextPhases) {
  std::string again = "%1 = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64\n";
  // A wait for the end of the phase, also a relaxed one.
  const char relaxed[] =
      "%ok = nvvm.mbarrier.try_wait %mbar, %c0 {relaxed = true, scope = "
      "#nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1\n";
  for (const std::string &wait : {std::string(wait0), untilTrue(relaxed)})
    EXPECT_EQ(runAfter(init64, arrive + wait + again), "") << wait;
  // A barrier after which all have arrived.
  EXPECT_EQ(runAfter(init64, arrive + std::string("nvvm.barrier0\n") + again),
            "");
  // Nothing: the first to arrive again is early, whichever it is.
  EXPECT_TRUE(
      contains(runAfter("nvvm.mbarrier.init %mbar, %c1 : !llvm.ptr<3>, i32",
                        arrive + again),
               "arrives at the mbarrier at 0x400 in phase"));
  // Arrivals of cp.async copies come behind the waits of their thread.
  std::string address = R"(
    %other = llvm.getelementptr %shared[1032] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
)";
  std::string once = address + init64 + R"(
    nvvm.mbarrier.init %other, %c32 : !llvm.ptr<3>, i32
)";
  std::string copies = arrive + std::string(R"(
    %same = llvm.getelementptr %shared[1032] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %low = llvm.icmp "ult" %tid, %c32 : i32
    llvm.cond_br %low, ^wait, ^next
  ^wait:
)") + wait0 + R"(
    nvvm.cp.async.mbarrier.arrive %same {noinc = true} : !llvm.ptr<3>
    llvm.br ^next
  ^next:
    nvvm.mbarrier.try_wait.parity %same, %c0, %ticks : !llvm.ptr<3>, i32, i32
)" + again;
  EXPECT_EQ(runAfter(once, copies, makeShape(64, 1040)), "");
}

TEST_F(MBarrierTest, DropsArrivals) {
  // The upper half leaves after the first phase.
  std::string body = std::string(store) + R"(
    %low = llvm.icmp "ult" %tid, %c32 : i32
    llvm.cond_br %low, ^stay, ^leave
  ^leave:
    %dropped = nvvm.mbarrier.arrive_drop %mbar : !llvm.ptr<3> -> i64
    llvm.br ^end
  ^stay:
    %0 = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64
)" + wait0 + load + "%1 = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64\n" +
                     wait1 + R"(
    llvm.br ^end
  ^end:
)";
  EXPECT_EQ(runAfter(init64, body), "");
}

TEST_F(MBarrierTest, ArrivesWithoutCompleting) {
  std::string part = "%s = nvvm.mbarrier.arrive.nocomplete %mbar, %c1 : "
                     "!llvm.ptr<3>, i32 -> i64\n";
  EXPECT_EQ(runAfter("nvvm.mbarrier.init %mbar, %c128 : !llvm.ptr<3>, i32",
                     store + part + arrive + wait0 + load),
            "");
  EXPECT_TRUE(contains(runAfter(init64, part),
                       "would complete phase 0 of the mbarrier at 0x400"));
}

TEST_F(MBarrierTest, CountsBytes) {
  std::string once = std::string(init64) + R"(
    nvvm.mbarrier.expect_tx %mbar, %c512 : !llvm.ptr<3>, i32
)";
  std::string complete = R"(
    nvvm.mbarrier.complete_tx %mbar, %c8 : !llvm.ptr<3>, i32
)";
  EXPECT_EQ(runAfter(once, store + complete + arrive + wait0 + load), "");
  EXPECT_TRUE(contains(runAfter(once, std::string(store) + arrive + wait0),
                       "64 of 64 arrivals, 512 bytes of copies are missing"));
  EXPECT_TRUE(contains(runAfter(init64, store + complete + arrive + wait0),
                       "512 bytes came that no expect_tx announced"));
  EXPECT_TRUE(contains(runAfter(std::string(init64) + R"(
    %many = llvm.mlir.constant(1048576 : i32) : i32
    nvvm.mbarrier.expect_tx %mbar, %many : !llvm.ptr<3>, i32
)",
                                ""),
                       "would wait for 1048576 bytes, which must be -1048575 "
                       "to 1048575"));
}

TEST_F(MBarrierTest, ChecksItsLife) {
  EXPECT_TRUE(contains(runAfter("", arrive),
                       "there is no initialized mbarrier at 0x400"));
  EXPECT_TRUE(contains(runAfter(init64, arrive, makeShape(64, 1032), "\n"),
                       "no barrier orders that after its initialization by "
                       "nvvm.mbarrier.init at"));
  EXPECT_TRUE(contains(runAfter(std::string(init64) + "\n" + init64, ""),
                       "put an mbarrier.inval between them"));
  EXPECT_EQ(runAfter(std::string(init64) +
                         "\n nvvm.mbarrier.inval %mbar : !llvm.ptr<3>\n" +
                         init64,
                     std::string(store) + arrive + wait0 + load),
            "");
  EXPECT_TRUE(
      contains(runAfter(R"(
    %odd = llvm.getelementptr %mbar[-4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.mbarrier.init %odd, %c1 : !llvm.ptr<3>, i32
)",
                        ""),
               "misaligned write of 8 bytes of shared memory at 0x3fc"));
}

TEST_F(MBarrierTest, FindsPhasesThatWereMissed) {
  // One thread ends two phases while the others wait for the first.
  auto makeBody = [](const std::string &producer) {
    return R"(
    %produces = llvm.icmp "eq" %tid, )" +
           producer + R"( : i32
    llvm.cond_br %produces, ^produce, ^consume
  ^produce:
    %s0 = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64
    %s1 = nvvm.mbarrier.arrive %mbar : !llvm.ptr<3> -> i64
    llvm.br ^end
  ^consume:
)" + wait0 +
           R"(
    llvm.br ^end
  ^end:
)";
  };
  std::string once = "nvvm.mbarrier.init %mbar, %c1 : !llvm.ptr<3>, i32";
  EXPECT_TRUE(contains(runAfter(once, makeBody("%c32"), makeShape(33, 1032)),
                       "waits for the end of phase 0 of the mbarrier at 0x400, "
                       "which is in phase 2"));
  EXPECT_TRUE(contains(runAfter(once, makeBody("%c0"), makeShape(33, 1032)),
                       "for the end of phase 2 of the mbarrier at 0x400: 0 of "
                       "1 arrivals"));
}

/// CTA 1 tells CTA 0 through an mbarrier there that it wrote.
std::string makeRemote() {
  return R"(
    %remote = llvm.icmp "eq" %rank, %c1 : i32
    llvm.cond_br %remote, ^write, ^read
  ^write:
    %there = nvvm.mapa %slot, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %tid, %there : i32, !llvm.ptr<7>
    %mbarThere = nvvm.mapa %mbar, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.mbarrier.arrive %mbarThere {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    llvm.br ^end
  ^read:
    nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : !llvm.ptr<3>, i32, i32
    %value = llvm.load %opposite : !llvm.ptr<3> -> i32
    llvm.store %value, %to : i32, !llvm.ptr
    llvm.br ^end
  ^end:
)";
}

TEST_F(MBarrierTest, FindsArrivalsThatOutliveTheirCTA) {
  // Nobody waits for the arrivals.
  std::string body = R"(
    nvvm.cluster.arrive
    %remote = llvm.icmp "eq" %rank, %c1 : i32
    llvm.cond_br %remote, ^arrive, ^wait
  ^arrive:
    %mbarThere = nvvm.mapa %mbar, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.mbarrier.arrive %mbarThere : !llvm.ptr<7>
    llvm.br ^wait
  ^wait:
    nvvm.cluster.wait
)";
  EXPECT_TRUE(
      contains(runAfter(std::string(init64) + "\n nvvm.fence.mbarrier.init\n",
                        body, makeShape(64, 1032, 2, 2),
                        "nvvm.cluster.arrive\n nvvm.cluster.wait\n"),
               "it ends while a thread of another CTA arrives at the "
               "mbarrier at 0x400 of CTA 0 of the cluster by "
               "nvvm.mbarrier.arrive at"));
}

TEST_F(MBarrierTest, TakesArrivalsOfOtherCTAs) {
  LaunchShape shape = makeShape(64, 1032, 2, 2);
  std::string fence = "\n nvvm.fence.mbarrier.init\n";
  std::string relaxed = "nvvm.cluster.arrive.relaxed\n nvvm.cluster.wait\n";
  ASSERT_EQ(runAfter(init64 + fence, makeRemote(), shape, relaxed), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 63 - i);
  EXPECT_TRUE(contains(runAfter(init64, makeRemote(), shape,
                                "nvvm.cluster.arrive\n nvvm.cluster.wait\n"),
                       "another CTA uses the mbarrier at 0x400 of CTA 0 of the "
                       "cluster, but no fence.mbarrier.init"));
  EXPECT_TRUE(contains(runAfter(init64, makeRemote(), shape, relaxed),
                       "no barrier orders that after its initialization"));
}

} // namespace
