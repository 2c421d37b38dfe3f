//===- WarpgroupRegistersTest.cpp - wgmma with A in registers -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

/// Where a thread finds its four registers of A.
constexpr const char *addressesOfA = R"(
    %one32 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %warp = llvm.lshr %t, %c5 : i32
    %warpRow = llvm.mul %warp, %c16 : i32
    %lane = llvm.and %t, %c31 : i32
    %laneRow = llvm.lshr %lane, %c2 : i32
    %row = llvm.add %warpRow, %laneRow : i32
    %rowWord = llvm.mul %row, %c4 : i32
    %column = llvm.and %t, %c3 : i32
    %wordA = llvm.add %rowWord, %column : i32
    %from0 = llvm.getelementptr %in[%wordA] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %from1 = llvm.getelementptr %from0[32] : (!llvm.ptr) -> !llvm.ptr, i32
    %from2 = llvm.getelementptr %from0[256] : (!llvm.ptr) -> !llvm.ptr, i32
    %from3 = llvm.getelementptr %from0[288] : (!llvm.ptr) -> !llvm.ptr, i32
    %c0 = llvm.extractvalue %c[0] : !llvm.struct<(f32, f32, f32, f32)>
)";
constexpr const char *fence = "nvvm.wgmma.fence.aligned\n";
constexpr const char *commit = "nvvm.wgmma.commit.group.sync.aligned\n";
constexpr const char *waitForOne = "nvvm.wgmma.wait.group.sync.aligned 1\n";

/// Registers `name`0 to 3 of A.
std::string loadA(const std::string &name) {
  std::string text;
  for (const char *i : {"0", "1", "2", "3"})
    text += "%" + name + i + " = llvm.load %from" + i + " : !llvm.ptr -> i32\n";
  return text;
}

/// `result` from registers `name`0 to 3 of A and accumulators of ones.
std::string multiply(const std::string &result, const std::string &name) {
  std::string a = "%" + name;
  return "%" + result +
         R"( = llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, $13, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 0;\0A}", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l,r" %c0, %c0, %c0, %c0, )" +
         a + "0, " + a + "1, " + a + "2, " + a + "3, %b, %one32" +
         " : (f32, f32, f32, f32, i32, i32, i32, i32, i64, i32) -> "
         "!llvm.struct<(f32, f32, f32, f32)>\n";
}

/// `body` three times.
std::string repeat(const std::string &body) {
  return "llvm.br ^loop(%one32 : i32)\n^loop(%i: i32):\n" + body + R"(
    %next = llvm.add %i, %one32 : i32
    %again = llvm.icmp "ule" %next, %c3 : i32
    llvm.cond_br %again, ^loop(%next : i32), ^done
  ^done:
  )";
}

/// Its operations come after B is in shared memory.
std::string withRegisters(const std::string &operations) {
  return std::string(proxyFence) + "nvvm.barrier0\n" + addressesOfA +
         operations;
}

TEST(WarpgroupRegisters, RegistersOfA) {
  EXPECT_EQ(run(withRegisters(loadA("a") + fence + multiply("d", "a") + commit +
                              waitForAll)),
            "");
  // One fence is enough for all products that follow.
  EXPECT_EQ(run(withRegisters(loadA("a") + loadA("e") + fence +
                              multiply("first", "a") + multiply("d", "e") +
                              commit + waitForAll)),
            "");
}

TEST(WarpgroupRegisters, FindsRegistersOfAWithoutFence) {
  std::string rest = multiply("d", "a") + commit + waitForAll;
  expectFault(withRegisters(loadA("a") + rest), "wgmma.fence");
  std::string fault = run(withRegisters(fence + loadA("a") + rest));
  EXPECT_NE(fault.find("reads registers of A that llvm.load at "),
            std::string::npos)
      << fault;
  EXPECT_NE(fault.find("wrote after the last wgmma.fence"), std::string::npos)
      << fault;
  // Only the last of several registers is written too late.
  std::string loads = loadA("a");
  size_t last = loads.find("%a3");
  expectFault(
      withRegisters(loads.substr(0, last) + fence + loads.substr(last) + rest),
      "wrote after the last wgmma.fence");
  // A fence comes before the first product, but none between the second and
  // the registers that it reads.
  expectFault(withRegisters(loadA("a") + fence + multiply("first", "a") +
                            commit + waitForAll + loadA("e") +
                            multiply("d", "e") + commit + waitForAll),
              "wrote after the last wgmma.fence");
}

TEST(WarpgroupRegisters, MovesOfRegistersOfAAreNoWrites) {
  EXPECT_EQ(run(withRegisters(loadA("e") + R"(
    %pair = llvm.load %from3 {alignment = 4 : i64} : !llvm.ptr -> vector<2xi32>
    %zero = llvm.mlir.constant(0 : i32) : i32
    )" + fence + R"(
    %h = llvm.bitcast %e0 : i32 to vector<2xf16>
    %a0 = llvm.bitcast %h : vector<2xf16> to i32
    %s = llvm.mlir.undef : !llvm.struct<(i32, i32)>
    %late = llvm.add %e0, %one32 : i32
    %s0 = llvm.insertvalue %late, %s[0] : !llvm.struct<(i32, i32)>
    %s1 = llvm.insertvalue %e1, %s0[1] : !llvm.struct<(i32, i32)>
    %a1 = llvm.extractvalue %s1[1] : !llvm.struct<(i32, i32)>
    llvm.br ^next(%e2 : i32)
  ^next(%a2: i32):
    %element = llvm.extractelement %pair[%zero : i32] : vector<2xi32>
    %a3 = llvm.freeze %element : i32
  )" + multiply("d", "a") + commit +
                              waitForAll)),
            "");
  expectFault(withRegisters(loadA("a") + fence + R"(
    %late = llvm.add %a0, %one32 : i32
    %s = llvm.mlir.undef : !llvm.struct<(i32, i32)>
    %s0 = llvm.insertvalue %late, %s[0] : !llvm.struct<(i32, i32)>
    %e0 = llvm.extractvalue %s0[0] : !llvm.struct<(i32, i32)>
    %e1 = llvm.bitcast %a1 : i32 to i32
    %e2 = llvm.bitcast %a2 : i32 to i32
    %e3 = llvm.bitcast %a3 : i32 to i32
  )" + multiply("d", "e") + commit +
                            waitForAll),
              "reads registers of A that llvm.add at ");
}

TEST(WarpgroupRegisters, FindsWritesOfRegistersOfAInFlight) {
  std::string product = fence + multiply("d", "a");
  EXPECT_EQ(
      run(withRegisters(repeat(loadA("a") + product + commit + waitForAll))),
      "");
  expectFault(
      withRegisters(repeat(loadA("a") + product + commit) + waitForAll),
      "writes registers of A of a warpgroup product in flight: it is in group "
      "1 of 1, of which the first 0 were waited for");
  expectFault(withRegisters(repeat(loadA("a") + product) + commit + waitForAll),
              "writes registers of A of a warpgroup product that is not "
              "committed");
  // Nothing writes these again.
  EXPECT_EQ(
      run(withRegisters(loadA("a") + repeat(product + commit) + waitForAll)),
      "");
}

/// Parts that take turns, as the expansions of weights do.
TEST(WarpgroupRegisters, RegistersOfAOfTwoPartsTakeTurns) {
  std::string first = loadA("a") + fence + multiply("first", "a") + commit;
  std::string second = loadA("e") + fence + multiply("d", "e") + commit;
  std::string all =
      repeat(first + waitForOne + second + waitForOne) + waitForAll;
  EXPECT_EQ(run(withRegisters(all)), "");

  // Without any one of what orders the parts.
  for (const char *operation : {fence, commit, waitForOne})
    for (size_t at = all.find(operation); at != std::string::npos;
         at = all.find(operation, at + 1)) {
      std::string rest = all;
      rest.erase(at, StringRef(operation).size());
      EXPECT_NE(run(withRegisters(rest)), "")
          << "without " << operation << " at " << at;
    }
}

TEST(WarpgroupRegisters, FindsResultsInFlightInA) {
  auto chain = [&](const std::string &between) {
    return withRegisters(loadA("a") + fence + R"(
    %p = llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, $9, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {$0, $1}, {$4, $5, $6, $7}, $8, p, 1, 1, 0;\0A}", "=r,=r,0,1,r,r,r,r,l,r" %word, %word, %a0, %a1, %a2, %a3, %b, %one32 : (i32, i32, i32, i32, i32, i32, i64, i32) -> !llvm.struct<(i32, i32)>
    nvvm.wgmma.commit.group.sync.aligned
    %e0 = llvm.extractvalue %p[0] : !llvm.struct<(i32, i32)>
    %e1 = llvm.extractvalue %p[1] : !llvm.struct<(i32, i32)>
    %e2 = llvm.extractvalue %p[0] : !llvm.struct<(i32, i32)>
    %e3 = llvm.extractvalue %p[1] : !llvm.struct<(i32, i32)>
    )" + between + fence +
                         multiply("other", "e") + multiply("d", "a") + commit +
                         waitForAll);
  };
  EXPECT_EQ(run(chain(waitForAll)), "");
  expectFault(chain(""), "reads the result of a warpgroup product in flight");
}

} // namespace
