//===- ProductKernelTest.cpp - kernels that use tensor cores --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

TEST(ProductKernel, LoadsMultipliesAndStoresMatrices) {
  // A is 16 x 16 and B, by columns, 16 x 8; both are copied as rows of pieces.
  KernelRunner runner(R"(
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x vector<4xi32>>
  llvm.func @f(%in: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
    %to = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %piece = llvm.load %from : !llvm.ptr -> vector<4xi32>
    llvm.store %piece, %to : vector<4xi32>, !llvm.ptr<3>
    %low = llvm.and %t, %c15 : i32
    %tB = llvm.add %low, %c32 : i32
    %fromB = llvm.getelementptr %in[%tB] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
    %pieceB = llvm.load %fromB : !llvm.ptr -> vector<4xi32>
    %toB = llvm.getelementptr %shared[%tB] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %isLow = llvm.icmp "ult" %t, %c16 : i32
    llvm.cond_br %isLow, ^store, ^go
  ^store:
    llvm.store %pieceB, %toB : vector<4xi32>, !llvm.ptr<3>
    llvm.br ^go
  ^go:
    nvvm.bar.warp.sync %all : i32
    %a = nvvm.ldmatrix %to {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %b = nvvm.ldmatrix %toB {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
    %a1 = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32, i32, i32)>
    %a2 = llvm.extractvalue %a[2] : !llvm.struct<(i32, i32, i32, i32)>
    %a3 = llvm.extractvalue %a[3] : !llvm.struct<(i32, i32, i32, i32)>
    %b0 = llvm.extractvalue %b[0] : !llvm.struct<(i32, i32)>
    %b1 = llvm.extractvalue %b[1] : !llvm.struct<(i32, i32)>
    %x0 = llvm.bitcast %a0 : i32 to vector<2xf16>
    %x1 = llvm.bitcast %a1 : i32 to vector<2xf16>
    %x2 = llvm.bitcast %a2 : i32 to vector<2xf16>
    %x3 = llvm.bitcast %a3 : i32 to vector<2xf16>
    %y0 = llvm.bitcast %b0 : i32 to vector<2xf16>
    %y1 = llvm.bitcast %b1 : i32 to vector<2xf16>
    %zero = llvm.mlir.constant(dense<0.0> : vector<2xf16>) : vector<2xf16>
    %d = nvvm.mma.sync A[%x0, %x1, %x2, %x3] B[%y0, %y1] C[%zero, %zero] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %d1 = llvm.extractvalue %d[1] : !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %z0 = llvm.bitcast %d0 : vector<2xf16> to i32
    %z1 = llvm.bitcast %d1 : vector<2xf16> to i32
    nvvm.bar.warp.sync %all : i32
    nvvm.stmatrix %to, %z0, %z1 {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32
    nvvm.bar.warp.sync %all : i32
    %target = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
    llvm.cond_br %isLow, ^write, ^end
  ^write:
    %result = llvm.load %to : !llvm.ptr<3> -> vector<4xi32>
    llvm.store %result, %target : vector<4xi32>, !llvm.ptr
    llvm.br ^end
  ^end:
    llvm.return
  })");
  // Matrices 0 to 3 of A: rows 0-7 and 8-15 of columns 0-7, then of 8-15.
  std::vector<Piece> in(48);
  auto a = [](int row, int k) { return (row * 5 + k * 3) % 7 - 3; };
  auto b = [](int k, int column) { return (k * 2 + column * 3) % 5 - 2; };
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 8; ++j)
      in[i][j] = nms::f32ToF16(a(i % 16, i / 16 * 8 + j));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      in[32 + i][j] = nms::f32ToF16(b(i / 8 * 8 + j, i % 8));
  Piece *device = runner.upload<Piece>(in);
  auto *out = runner.allocate<Piece>(16);
  ASSERT_EQ(runner.run("f", makeShape(32), device, out), "");
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      int sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += a(row, k) * b(k, column);
      ASSERT_EQ(nms::f16ToF32(out[row][column]), sum) << row << " " << column;
    }
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

constexpr const char *issue = R"(
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %c, #nvvm.shape<m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
)";
TEST(ProductKernel, Warpgroup) {
  EXPECT_EQ(
      run(std::string(proxyFence) + "nvvm.barrier0\n" + issue + waitForAll),
      "");
}

TEST(ProductKernel, WarpgroupFromInlinePTX) {
  EXPECT_EQ(run(std::string(proxyFence) + R"(nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %one32 = llvm.mlir.constant(1 : i32) : i32
    %c0 = llvm.extractvalue %c[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d = llvm.inline_asm has_side_effects asm_dialect = att "{\0A.reg .pred p;\0Asetp.ne.b32 p, $10, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, p, 1, 1, 0, 0;\0A}\0A", "=f,=f,=f,=f,0,1,2,3,l,l,r" %c0, %c0, %c0, %c0, %a, %b, %one32 : (f32, f32, f32, f32, i64, i64, i32) -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    )" + waitForAll),
            "");
}

TEST(ProductKernel, FindsMissingOrder) {
  expectFault(std::string("nvvm.barrier0\n") + issue + waitForAll,
              "fence.proxy.async");
  expectFault(std::string(proxyFence) + issue + waitForAll,
              "no barrier, mbarrier or wait orders them");
  expectFault(std::string(proxyFence) + "nvvm.barrier0\n" + issue +
                  "llvm.store %word, %to : i32, !llvm.ptr<3>\n" + waitForAll,
              "the warpgroup products of warpgroup 0");
  EXPECT_EQ(run(std::string(proxyFence) + "nvvm.barrier0\n" + issue +
                waitForAll + "llvm.store %word, %to : i32, !llvm.ptr<3>\n"),
            "");
}

TEST(ProductKernel, FindsMissingInstructions) {
  std::string all =
      std::string(proxyFence) + "nvvm.barrier0\n" + issue + waitForAll;
  auto without = [&](const std::string &text) {
    std::string rest = all;
    rest.erase(rest.find(text), text.size());
    return rest;
  };
  expectFault(without("nvvm.wgmma.fence.aligned"), "wgmma.fence");
  expectFault(without("nvvm.wgmma.commit.group.sync.aligned"),
              "wgmma.commit_group must come before");
}

TEST(ProductKernel, FindsReadsOfResultsInFlight) {
  std::string before = std::string(proxyFence) + "nvvm.barrier0\n" + issue;
  expectFault(before, "reads the result of a warpgroup product in flight");
  // Moving registers is no read; the last product's wait counts.
  std::string moved = before + R"(
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    llvm.br ^next(%d0 : f32)
  ^next(%moved: f32):
  )";
  expectFault(moved + "%sum = llvm.fadd %moved, %one : f32\n" + waitForAll,
              "in flight");
  EXPECT_EQ(run(moved + waitForAll + "%sum = llvm.fadd %moved, %one : f32\n"),
            "");
}

TEST(ProductKernel, Registers) {
  std::string all =
      std::string(proxyFence) + "nvvm.barrier0\n" + issue + waitForAll;
  EXPECT_EQ(run("nvvm.setmaxregister decrease 40\n"
                "nvvm.setmaxregister increase 232\n" +
                all),
            "");
  expectFault("nvvm.setmaxregister decrease 40\n"
              "nvvm.setmaxregister decrease 64\n" +
                  all,
              "lowers the registers of a thread to 64, which has 40");
}

} // namespace
