//===- WarpTest.cpp - registers and exchange in a warp --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

/// A kernel whose thread `t` writes `%r` of type `type`, which `operations`
/// compute from its number in the grid `%t`, to `out[t]`.
std::string makeKernel(const std::string &type, const std::string &operations) {
  return R"(
  llvm.func @f(%out: !llvm.ptr) attributes {nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %ntid = nvvm.read.ptx.sreg.ntid.x : i32
    %ctaid = nvvm.read.ptx.sreg.ctaid.x : i32
    %first = llvm.mul %ctaid, %ntid : i32
    %t = llvm.add %first, %tid : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    )" + operations +
         R"(
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, )" +
         type + R"(
    llvm.store %r, %to : )" +
         type + R"(, !llvm.ptr
    llvm.return
  })";
}

/// The values that `threads` threads of each of `ctas` CTAs wrote.
template <typename T = int32_t>
std::vector<T> run(const std::string &type, const std::string &operations,
                   unsigned threads = 32, unsigned ctas = 1,
                   unsigned clusterSize = 1) {
  KernelRunner runner(makeKernel(type, operations));
  T *out = runner.allocate<T>(size_t(threads) * ctas);
  EXPECT_EQ(runner.run("f", makeShape(threads, 0, ctas, clusterSize), out), "");
  return std::vector<T>(out, out + size_t(threads) * ctas);
}

std::string runFault(const std::string &operations) {
  KernelRunner runner(makeKernel("i32", operations));
  auto *out = runner.allocate<int32_t>(32);
  return runner.run("f", makeShape(32), out);
}

TEST(Registers, Positions) {
  std::vector<int32_t> rank =
      run("i32", "%r = nvvm.read.ptx.sreg.cluster.ctarank : i32", 32, 4, 2);
  std::vector<int32_t> cluster =
      run("i32", "%r = nvvm.read.ptx.sreg.clusterid.x : i32", 32, 4, 2);
  std::vector<int32_t> clusters =
      run("i32", "%r = nvvm.read.ptx.sreg.nclusterid.x : i32", 32, 4, 2);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(rank[i], i / 32 % 2);
    EXPECT_EQ(cluster[i], i / 64);
    EXPECT_EQ(clusters[i], 2);
  }
}

TEST(Registers, Lanes) {
  std::vector<int32_t> lane =
      run("i32", "%r = nvvm.read.ptx.sreg.laneid : i32", 64);
  std::vector<uint32_t> below =
      run<uint32_t>("i32", "%r = nvvm.read.ptx.sreg.lanemask.lt : i32", 64);
  std::vector<uint32_t> above =
      run<uint32_t>("i32", "%r = nvvm.read.ptx.sreg.lanemask.ge : i32", 64);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(lane[i], i % 32);
    EXPECT_EQ(below[i], (uint64_t(1) << (i % 32)) - 1);
    EXPECT_EQ(above[i], ~below[i]);
  }
}

TEST(Registers, ClocksGoOn) {
  std::vector<int32_t> passed = run("i32", R"(
    %a = nvvm.read.ptx.sreg.clock : i32
    %b = nvvm.read.ptx.sreg.clock : i32
    %r = llvm.sub %b, %a : i32)");
  EXPECT_GT(passed[0], 0);
}

TEST(Warp, Shuffles) {
  std::vector<int32_t> butterfly = run(
      "i32", "%r = nvvm.shfl.sync bfly %all, %t, %c8, %c31 : i32 -> i32", 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(butterfly[i], i ^ 8);
  std::vector<float> down = run<float>("f32", R"(
    %value = llvm.sitofp %t : i32 to f32
    %r = nvvm.shfl.sync down %all, %value, %c8, %c31 : f32 -> f32)");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(down[i], i + 8 < 32 ? i + 8 : i);
}

TEST(Warp, ShuffleSaysWhatIsValid) {
  std::vector<int32_t> valid = run("i32", R"(
    %pair = nvvm.shfl.sync down %all, %t, %c8, %c31 {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    %bit = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
    %r = llvm.zext %bit : i1 to i32)");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(valid[i], i < 24);
}

TEST(Warp, Votes) {
  const std::string odd = R"(
    %low = llvm.and %t, %c1 : i32
    %odd = llvm.trunc %low : i32 to i1
    )";
  EXPECT_EQ(run<uint32_t>("i32", odd + "%r = nvvm.vote.sync ballot %all, %odd "
                                       "-> i32")[7],
            0xaaaaaaaau);
  auto vote = [&](const std::string &kind) {
    return run("i32", odd + "%v = nvvm.vote.sync " + kind + R"( %all, %odd -> i1
      %r = llvm.zext %v : i1 to i32)")[0];
  };
  EXPECT_EQ(vote("any"), 1);
  EXPECT_EQ(vote("all"), 0);
  EXPECT_EQ(vote("uni"), 0);
}

TEST(Warp, ElectsOne) {
  std::vector<int32_t> elected = run("i32", R"(
    %v = nvvm.elect.sync -> i1
    %r = llvm.zext %v : i1 to i32)",
                                     64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(elected[i], i % 32 == 0);
}

TEST(Warp, Reductions) {
  EXPECT_EQ(run("i32", "%r = nvvm.redux.sync add %t, %all : i32 -> i32")[3],
            496);
  EXPECT_EQ(run("i32", R"(
    %n = llvm.sub %c8, %t : i32
    %r = nvvm.redux.sync min %n, %all : i32 -> i32)")[0],
            -23);
  EXPECT_EQ(run<float>("f32", R"(
    %n = llvm.sub %c8, %t : i32
    %x = llvm.sitofp %n : i32 to f32
    %r = nvvm.redux.sync fmax %x, %all {abs = true} : f32 -> f32)")[0],
            23.0f);
}

TEST(Warp, Matches) {
  std::vector<uint32_t> same = run<uint32_t>("i32", R"(
    %parity = llvm.and %t, %c1 : i32
    %r = nvvm.match.sync any %all, %parity : i32 -> i32)");
  EXPECT_EQ(same[0], 0x55555555u);
  EXPECT_EQ(same[1], 0xaaaaaaaau);
  EXPECT_EQ(run("i32", R"(
    %pair = nvvm.match.sync all %all, %c8 : i32 -> !llvm.struct<(i32, i1)>
    %bit = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
    %r = llvm.zext %bit : i1 to i32)")[5],
            1);
}

TEST(Warp, FindsDivergence) {
  std::string fault = runFault(R"(
    %r = nvvm.shfl.sync idx %c8, %t, %c1, %c31 : i32 -> i32)");
  EXPECT_NE(fault.find("lane 0"), std::string::npos) << fault;
  fault = runFault(R"(
    %low = llvm.icmp "ult" %t, %c8 : i32
    llvm.cond_br %low, ^bb1, ^bb2
  ^bb1:
    %a = nvvm.shfl.sync idx %all, %t, %c1, %c31 : i32 -> i32
    llvm.br ^bb3(%a : i32)
  ^bb2:
    %b = nvvm.shfl.sync bfly %all, %t, %c1, %c31 : i32 -> i32
    llvm.br ^bb3(%b : i32)
  ^bb3(%r: i32):)");
  EXPECT_NE(fault.find("divergence"), std::string::npos) << fault;
}

TEST(Arithmetic, Operations) {
  EXPECT_EQ(run("i32", R"(
    %x = llvm.mlir.constant(1.00048828125 : f32) : f32
    %r = nvvm.convert.float.to.tf32 %x {rnd = #nvvm.fp_rnd_mode<rna>})")[0],
            0x3f802000);
  EXPECT_EQ(run<uint16_t>("i16", R"(
    %x = llvm.mlir.constant(448.0 : f32) : f32
    %y = llvm.mlir.constant(1.0 : f32) : f32
    %r = nvvm.convert.f32x2.to.f8x2 %x, %y {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN))")
                [0],
            0x7e38);
  EXPECT_EQ(run("i32", R"(
    %lo = llvm.mlir.constant(0x33221100 : i32) : i32
    %hi = llvm.mlir.constant(0x77665544 : i32) : i32
    %s = llvm.mlir.constant(0x5410 : i32) : i32
    %r = nvvm.prmt #nvvm.permute_mode<default> %s, %lo, %hi : i32)")[0],
            0x55441100);
  EXPECT_EQ(run("i32", R"(
    %a = llvm.mlir.constant(dense<[1, 2, 3, -1]> : vector<4xi8>) : vector<4xi8>
    %r = nvvm.dot.accumulate.4way %a <signed>, %a <signed>, %c8 : vector<4xi8>, vector<4xi8>)")
                [0],
            23);
  EXPECT_EQ(run<float>("f32", R"(
    %x = llvm.sitofp %c8 : i32 to f32
    %r = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%x) : (f32) -> f32)")
                [0],
            256.0f);
}

TEST(Arithmetic, RefusesWhatIsNotEmulated) {
  KernelRunner runner(makeKernel("i16", R"(
    %x = llvm.mlir.constant(1.0 : f32) : f32
    %r = nvvm.convert.f32x2.to.f8x2 %x, %x {rnd = #nvvm.fp_rnd_mode<rp>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E8M0FNU))"),
                      /*wantError=*/true);
  EXPECT_NE(runner.error.find("emulated are f8E4M3FN and f8E5M2"),
            std::string::npos)
      << runner.error;
}

} // namespace
