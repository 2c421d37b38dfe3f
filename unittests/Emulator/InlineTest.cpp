//===- InlineTest.cpp - inline PTX ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "Ops/Inline/InlineText.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

TEST(InlineText, Instructions) {
  auto text = parsePtx(R"({
    .reg .pred p, q; // two
    .reg .b32 %r<2>;
    setp.ne.b32 p, $2, 0x10;
    @!p ld.global.v2.b32 {$0, $1}, [$3 + 8]; /* a pair */
  DONE:
    elect.sync _|q, -1;
  })");
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  ASSERT_EQ(text->registers.size(), 4u);
  EXPECT_EQ(text->registers[3].name, "%r1");
  EXPECT_EQ(text->registers[3].type, "b32");
  ASSERT_EQ(text->instructions.size(), 3u);
  EXPECT_EQ(text->labels.lookup("DONE"), 2u);
  EXPECT_EQ(text->instructions[0].operands[2].value, 16);
  const PtxInstruction &load = text->instructions[1];
  EXPECT_EQ(load.mnemonic, "ld.global.v2.b32");
  EXPECT_EQ(load.guard, "p");
  EXPECT_TRUE(load.isGuardNegated);
  EXPECT_EQ(load.operands[0].elements[1].name, "$1");
  EXPECT_EQ(load.operands[1].name, "$3");
  EXPECT_EQ(load.operands[1].value, 8);
  const PtxInstruction &elect = text->instructions[2];
  EXPECT_EQ(elect.operands[0].kind, PtxOperand::Kind::Pair);
  EXPECT_EQ(elect.operands[1].value, -1);
}

TEST(InlineText, Placeholders) {
  auto text = parsePtx("cvt.rn.bf16x2.f32 {$w0}, {$r0}, {$r1};");
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  EXPECT_EQ(text->instructions[0].operands[2].name, "$r1");
}

TEST(InlineText, Numbers) {
  auto text = parsePtx("mov.b32 $0, 0f3F800000; add.u32 $0, 1.0, 7U;");
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  EXPECT_EQ(text->instructions[0].operands[1].value, 0x3f800000);
  EXPECT_EQ(text->instructions[1].operands[1].value, 0x3f800000);
  EXPECT_EQ(text->instructions[1].operands[2].value, 7);
}

TEST(InlineText, Errors) {
  auto text = parsePtx("ld.global.b32 $0, [$1;");
  ASSERT_FALSE(bool(text));
  EXPECT_EQ(llvm::toString(text.takeError()), "expected ']' before ';'");
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// A kernel of one pointer to data, one to results, and `%t`, the thread.
std::string makeKernel(const std::string &operations) {
  return R"(
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>
  llvm.func @f(%in: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    )" + operations +
         R"(
    llvm.return
  })";
}

struct Result {
  std::vector<int32_t> out;
  std::string fault;
};

/// 32 threads, on the numbers from 0 and into zeros.
Result run(const std::string &operations) {
  KernelRunner runner(makeKernel(operations));
  std::vector<int32_t> numbers(128), zeros(128);
  for (int i = 0; i < 128; ++i)
    numbers[i] = i;
  int32_t *in = runner.upload<int32_t>(numbers);
  int32_t *out = runner.upload<int32_t>(zeros);
  Result result;
  result.fault = runner.run("f", makeShape(32), in, out);
  result.out.assign(out, out + 128);
  return result;
}

std::string getError(const std::string &operations) {
  return KernelRunner(makeKernel(operations), /*wantError=*/true).error;
}

TEST(Inline, ComputesByEitherOperation) {
  Result result = run(R"(
    %x = llvm.sitofp %t : i32 to f32
    %r = nvvm.inline_ptx "cvt.rn.bf16x2.f32 $0, $1, $1;" ro(%x : f32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[1], 0x3f803f80);
  result = run(R"(
    %r = llvm.inline_asm asm_dialect = att "add.u32 $0, $1, 5;", "=r,r" %t : (i32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.out[3], 8);
}

TEST(Inline, StructsTiesAndRegisters) {
  Result result = run(R"(
    %s = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .b32 h; mov.u32 h, %laneid; add.u32 $0, $0, h; mov.b64 $1, {h, $0}; }", "=r,=l,0,~{memory}" %t : (i32) -> !llvm.struct<(i32, i64)>
    %a = llvm.extractvalue %s[0] : !llvm.struct<(i32, i64)>
    %b = llvm.extractvalue %s[1] : !llvm.struct<(i32, i64)>
    %c32 = llvm.mlir.constant(32 : i64) : i64
    %high = llvm.lshr %b, %c32 : i64
    %h = llvm.trunc %high : i64 to i32
    %sum = llvm.add %a, %h : i32
    llvm.store %sum, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[5], 20);
}

TEST(Inline, LoadsAndStores) {
  Result result = run(R"(
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %first = llvm.mul %t, %c4 : i32
    %a = llvm.getelementptr %in[%first] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %b = llvm.getelementptr %out[%first] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %v = llvm.inline_asm has_side_effects asm_dialect = att "ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l" %a : (!llvm.ptr) -> !llvm.struct<(i32, i32, i32, i32)>
    %x = llvm.extractvalue %v[0] : !llvm.struct<(i32, i32, i32, i32)>
    %y = llvm.extractvalue %v[3] : !llvm.struct<(i32, i32, i32, i32)>
    nvvm.inline_ptx "st.global.v4.b32 [$0], {$1, $2, $1, $2};" ro(%b, %x, %y : !llvm.ptr, i32, i32))");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[40], 40);
  EXPECT_EQ(result.out[41], 43);
}

TEST(Inline, UpdatesMemory) {
  Result result = run(R"(
    %one = llvm.mlir.constant(1.0 : f32) : f32
    nvvm.inline_ptx "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $1, $1, $2};" ro(%out, %one, %one : !llvm.ptr, f32, f32)
    %x = nvvm.inline_ptx "atom.add.acq_rel.gpu.global.u32 $0, [$1 + 64], 2;" ro(%out : !llvm.ptr) -> i32
    %p = llvm.mlir.constant(0x3c003c00 : i32) : i32
    nvvm.inline_ptx "red.global.add.noftz.f16x2 [$0 + 128], $1;" ro(%out, %p : !llvm.ptr, i32))");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[3], 0x42000000); // 32.0
  EXPECT_EQ(result.out[16], 64);
  EXPECT_EQ(result.out[32], 0x50005000); // Two times 32.0.
}

TEST(Inline, PredicatesAndBranches) {
  Result result = run(R"(
    %c9 = llvm.mlir.constant(9 : i32) : i32
    %low = llvm.icmp "ult" %t, %c9 : i32
    nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%to, %c9 : !llvm.ptr, i32), predicate = %low)");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[8], 9);
  EXPECT_EQ(result.out[9], 0);
  result = run(R"(
    %r = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; mov.u32 $0, 0; AGAIN: add.u32 $0, $0, 3; setp.lt.u32 p, $0, $1; @p bra AGAIN; }", "=r,r" %t : (i32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[10], 12);
}

constexpr const char *exchange = R"(
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %slot = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.inline_ptx "st.shared.b32 [$0], $1;" ro(%slot, %t : !llvm.ptr<3>, i32)
    BARRIER
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %n = llvm.xor %t, %c1 : i32
    %other = llvm.getelementptr %shared[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %r = nvvm.inline_ptx "ld.shared.b32 $0, [$1];" ro(%other : !llvm.ptr<3>) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)";

TEST(Inline, SynchronizesLikeTheOperations) {
  std::string text = exchange;
  Result result = run(text.replace(text.find("BARRIER"), 7,
                                   "nvvm.inline_ptx \"bar.sync 0, 32;\""));
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[6], 7);
  text = exchange;
  result = run(
      text.replace(text.find("BARRIER"), 7, "nvvm.inline_ptx \"membar.cta;\""));
  EXPECT_NE(result.fault.find("nothing wrote"), std::string::npos)
      << result.fault;
}

TEST(Inline, AsksForMemoryAsTheOperationDoes) {
  auto ask = [](int offset) {
    return R"(
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %third = llvm.icmp "eq" %t, %c3 : i32
    %at = llvm.getelementptr %in[)" +
           std::to_string(offset) + R"(] : (!llvm.ptr) -> !llvm.ptr, i8
    %source = llvm.addrspacecast %at : !llvm.ptr to !llvm.ptr<1>
    nvvm.inline_ptx "cp.async.bulk.prefetch.L2.global [{$r0}], {$r1};" ro(%source, %bytes : !llvm.ptr<1>, i32), predicate = %third)";
  };
  EXPECT_EQ(run(ask(0)).fault, "");
  std::string fault = run(ask(1 << 20)).fault;
  EXPECT_NE(fault.find("thread 3: "), std::string::npos) << fault;
  EXPECT_NE(fault.find("are not all device memory"), std::string::npos)
      << fault;
}

TEST(Inline, Warp) {
  Result result = run(R"(
    %r = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p, q; .reg .b32 x; elect.sync _|p, 0xffffffff; shfl.sync.down.b32 x|q, $1, 1, 31, -1; selp.b32 $0, x, 7, q; @p mov.u32 $0, 99; }", "=r,r" %t : (i32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[0], 99);
  EXPECT_EQ(result.out[1], 2);
  EXPECT_EQ(result.out[31], 7);
}

TEST(Inline, TransposesAMatrixOfAWarp) {
  // Lane i holds 2 * i and 2 * i + 1: the number at (row, column) is
  // 8 * row + column.
  Result result = run(R"(
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c65537 = llvm.mlir.constant(65537 : i32) : i32
    %c65536 = llvm.mlir.constant(65536 : i32) : i32
    %twice = llvm.mul %t, %c2 : i32
    %both = llvm.mul %twice, %c65537 : i32
    %word = llvm.add %both, %c65536 : i32
    %r = llvm.inline_asm has_side_effects asm_dialect = att "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r" %word : (i32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)");
  EXPECT_EQ(result.fault, "");
  for (int lane = 0; lane < 32; ++lane) {
    int row = lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(result.out[lane] & 0xffff, 8 * column + row);
    EXPECT_EQ(result.out[lane] >> 16, 8 * (column + 1) + row);
  }
  EXPECT_NE(getError(R"(
    %r = llvm.inline_asm has_side_effects asm_dialect = att "movmatrix.sync.aligned.m16n8.trans.b8 $0, $1;", "=r,r" %t : (i32) -> i32
    llvm.store %r, %to : i32, !llvm.ptr)")
                .find("known is movmatrix.sync.aligned.m8n8.trans.b16"),
            std::string::npos);
}

/// The first CTA writes a number and raises a flag; the second waits for the
/// flag and reads the number.
std::string passOn(const std::string &store, const std::string &load) {
  KernelRunner runner(R"(
  llvm.func @f(%flag: !llvm.ptr, %data: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %first = llvm.icmp "eq" %block, %c0 : i32
    llvm.cond_br %first, ^bb1, ^bb2
  ^bb1:
    llvm.store %c7, %data : i32, !llvm.ptr
    nvvm.inline_ptx ")" +
                      store + R"( [$0], $1;" ro(%flag, %c1 : !llvm.ptr, i32)
    llvm.br ^bb4
  ^bb2:
    %seen = nvvm.inline_ptx ")" +
                      load + R"( $0, [$1];" ro(%flag : !llvm.ptr) -> i32
    %done = llvm.icmp "eq" %seen, %c1 : i32
    llvm.cond_br %done, ^bb3, ^bb2
  ^bb3:
    %value = llvm.load %data : !llvm.ptr -> i32
    llvm.store %value, %out : i32, !llvm.ptr
    llvm.br ^bb4
  ^bb4:
    llvm.return
  })");
  auto *flag = runner.upload<int32_t>({0});
  auto *data = runner.upload<int32_t>({0});
  auto *out = runner.upload<int32_t>({0});
  std::string fault = runner.run("f", makeShape(1, 0, 2), flag, data, out);
  if (fault.empty()) {
    EXPECT_EQ(*out, 7);
  }
  return fault;
}

TEST(Inline, OrdersAccordingToTheSemantics) {
  EXPECT_EQ(passOn("st.release.gpu.global.b32", "ld.acquire.gpu.global.b32"),
            "");
  std::string fault =
      passOn("st.relaxed.gpu.global.b32", "ld.relaxed.gpu.global.b32");
  EXPECT_NE(fault.find("race: reads 4 bytes of global memory"),
            std::string::npos)
      << fault;
}

/// The second CTA of a cluster sends to the first, which waits on its mbarrier
/// for `bytes` and stores the first number.
Result send(const std::string &instruction, int bytes) {
  KernelRunner runner(R"(
  llvm.mlir.global external @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64
  llvm.mlir.global external @data() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x i32>
  llvm.func @f(%out: !llvm.ptr) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %bytes = llvm.mlir.constant()" +
                      std::to_string(bytes) + R"( : i32) : i32
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %data = llvm.mlir.addressof @data : !llvm.ptr<3>
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %first = llvm.icmp "eq" %rank, %c0 : i32
    llvm.cond_br %first, ^bb1, ^bb2
  ^bb1:
    llvm.store %c1, %data : i32, !llvm.ptr<3>
    nvvm.mbarrier.init %barrier, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
    llvm.br ^bb2
  ^bb2:
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.cond_br %first, ^bb4, ^bb3
  ^bb3:
    %to = nvvm.mapa %data, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %end = nvvm.mapa %barrier, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.inline_ptx ")" +
                      instruction +
                      R"(" ro(%to, %c5, %end : !llvm.ptr<7>, i32, !llvm.ptr<7>)
    llvm.br ^bb5
  ^bb4:
    nvvm.mbarrier.try_wait.parity %barrier, %c0, %c1 : !llvm.ptr<3>, i32, i32
    %value = llvm.load %data : !llvm.ptr<3> -> i32
    llvm.store %value, %out : i32, !llvm.ptr
    llvm.br ^bb5
  ^bb5:
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.return
  })");
  auto *out = runner.upload<int32_t>({0});
  Result result;
  result.fault = runner.run("f", makeShape(1, 0, 2, 2), out);
  result.out = {*out};
  return result;
}

TEST(Inline, SendsToOtherCTAs) {
  Result result = send("st.async.weak.shared::cluster.mbarrier::complete_tx::"
                       "bytes.v4.b32 [$0], {$1, $1, $1, $1}, [$2];",
                       16);
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[0], 5);
  const std::string update =
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
      "add.u32 [$0], $1, [$2];";
  result = send(update, 4);
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.out[0], 6);
  result = send(update, 8);
  EXPECT_NE(result.fault.find("deadlock"), std::string::npos) << result.fault;
}

TEST(Inline, FindsMisalignedVectors) {
  Result result = run(R"(
    nvvm.inline_ptx "st.global.v4.b32 [$0 + 4], {$1, $1, $1, $1};" ro(%out, %t : !llvm.ptr, i32))");
  EXPECT_NE(result.fault.find("nvvm.inline_ptx at -:9:5: misaligned write of "
                              "16 bytes of global memory"),
            std::string::npos)
      << result.fault;
}

TEST(Inline, SaysWhatItKnows) {
  auto has = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(getError("nvvm.inline_ptx \"foo.bar $0;\" ro(%t : i32)"),
      "inline PTX 'foo.bar' is not emulated; known are abs, add, and, atom, "
      "bar");
  has(getError("%r = nvvm.inline_ptx \"prmt.b32.xyz $0, $1, $1, 0;\" ro(%t : "
               "i32) -> i32"),
      "known are prmt.b32, prmt.b32.b4e, prmt.b32.f4e");
  has(getError("%r = nvvm.inline_ptx \"add.u64 $0, $1, 1;\" ro(%t : i32) -> "
               "i32"),
      "wants 64 bits, but $0 has 32");
  has(getError("%r = nvvm.inline_ptx \"add.u32 $0, $1, x;\" ro(%t : i32) -> "
               "i32"),
      "uses 'x', which is no operand");
  has(getError("%r = nvvm.inline_ptx \"ld.local.b32 $0, [$1];\" ro(%in : "
               "!llvm.ptr) -> i32"),
      "is not emulated because of .local");
}

} // namespace
