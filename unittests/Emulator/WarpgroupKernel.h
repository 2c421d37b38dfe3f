//===- WarpgroupKernel.h - kernels of one warpgroup product -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_EMULATOR_WARPGROUPKERNEL_H
#define NM_SPARSE_UNITTESTS_EMULATOR_WARPGROUPKERNEL_H

#include "KernelRunner.h"
#include "nm_sparse/Base/Element.h"

namespace mlir::nm_sparse::emulator {

using Piece = std::array<uint16_t, 8>; ///< 16 bytes of f16.

inline constexpr const char *waitForAll =
    "nvvm.wgmma.wait.group.sync.aligned 0\n";
inline constexpr const char *proxyFence =
    "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
    "#nvvm.shared_space<cta>}\n";

/// One product of 128 threads. The pieces of A, then of B, are copied to shared
/// memory in the order of unswizzled K-major operands; then `operations`
/// compute `%d` from the descriptors and accumulators `%c`.
inline std::string makeWarpgroupKernel(const std::string &operations) {
  return R"(
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<144 x vector<4xi32>>
  llvm.func @f(%in: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %word = llvm.mlir.constant(7 : i32) : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
    %to = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %piece = llvm.load %from : !llvm.ptr -> vector<4xi32>
    llvm.store %piece, %to : vector<4xi32>, !llvm.ptr<3>
    %isLow = llvm.icmp "ult" %t, %c16 : i32
    llvm.cond_br %isLow, ^store, ^go
  ^store:
    %tB = llvm.add %t, %c128 : i32
    %fromB = llvm.getelementptr %in[%tB] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
    %pieceB = llvm.load %fromB : !llvm.ptr -> vector<4xi32>
    %toB = llvm.getelementptr %shared[%tB] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    llvm.store %pieceB, %toB : vector<4xi32>, !llvm.ptr<3>
    llvm.br ^go
  ^go:
    %a = llvm.mlir.constant(0x0000000800400000 : i64) : i64
    %b = llvm.mlir.constant(0x0000000800080080 : i64) : i64
    %u = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    %u0 = llvm.insertvalue %one, %u[0] : !llvm.struct<(f32, f32, f32, f32)>
    %u1 = llvm.insertvalue %one, %u0[1] : !llvm.struct<(f32, f32, f32, f32)>
    %u2 = llvm.insertvalue %one, %u1[2] : !llvm.struct<(f32, f32, f32, f32)>
    %c = llvm.insertvalue %one, %u2[3] : !llvm.struct<(f32, f32, f32, f32)>
    )" + operations +
         R"(
    %target = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %d, %target : !llvm.struct<(f32, f32, f32, f32)>, !llvm.ptr
    llvm.return
  })";
}

inline int elementA(int row, int k) { return (row * 5 + k * 3) % 7 - 3; }
inline int elementB(int k, int column) { return (k * 2 + column * 3) % 5 - 2; }

/// The text of the fault; where there is none, checks the product.
inline std::string run(const std::string &operations, unsigned threads = 128) {
  KernelRunner runner(makeWarpgroupKernel(operations));
  std::vector<Piece> in(144);
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 8; ++j)
      in[i][j] = nms::f32ToF16(elementA(i % 64, i / 64 * 8 + j));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      in[128 + i][j] = nms::f32ToF16(elementB(i / 8 * 8 + j, i % 8));
  Piece *device = runner.upload<Piece>(in);
  auto *out = runner.allocate<float>(size_t(threads) * 4);
  std::string fault = runner.run("f", makeShape(threads), device, out);
  if (!fault.empty())
    return fault;
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 4; ++i) {
      int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8;
      int column = thread % 4 * 2 + i % 2, sum = 1;
      for (int k = 0; k < 16; ++k)
        sum += elementA(row, k) * elementB(k, column);
      EXPECT_EQ(out[thread * 4 + i], sum) << thread << " " << i;
    }
  return "";
}

inline void expectFault(const std::string &operations, StringRef part) {
  std::string fault = run(operations);
  EXPECT_NE(fault.find(part), std::string::npos) << fault;
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_UNITTESTS_EMULATOR_WARPGROUPKERNEL_H
