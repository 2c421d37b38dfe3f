//===- PTXFeaturesTest.cpp - counts of hand-written PTX -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/PTXFeatures.h"

#include <gtest/gtest.h>

using namespace mlir::nm_sparse;

namespace {

constexpr char kText[] = R"(//
// Two kernels, and a function that is declared.
//
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) other (.param .b64 a);
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 table[4] = {1, 2, 3, 4};

	// .globl	first
.visible .entry first(
	.param .u64 .ptr .align 1 first_param_0
)
.maxntid 32, 4, 1
{
	.reg .pred 	%p<2>;
	.shared .align 16 .b32 tile[64];
	.shared .align 8 .b64 ready;
	ld.param.b64 	%rd1, [first_param_0];
	ld.global.nc.v4.b32 	{%r1, %r2, %r3, %r4}, [%rd1];
	@%p1 bra 	$L__BB0_3; /* over the loop */
$L__BB0_1:
	fma.rn.f32 	%f1, %f1, %f2, %f3;
	fma.rn.f16x2 	%r1, %r1, %r2, %r3;
$L__BB0_2: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2}, {%r1}, {%r2}, {%f1, %f2};
	mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}, %r3, 0x0;
	cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;
	@!%p1 bra 	$L__BB0_2;
	bra.uni 	$L__BB0_1;
$L__BB0_3:
	{ .reg .pred q;
	WAIT: mbarrier.try_wait.parity.shared::cta.b64 q, [%r1], %r2; @!q bra WAIT; }
	st.shared.v2.b16 	[tile], {%rs1, %rs2};
	ex2.approx.ftz.f32 	%f1, %f2;
	cvt.rn.f16x2.f32 	%r1, %f1, %f2;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];
	st.global.b16 	[%rd1+2], %rs1;
	ret;
}
.entry second() {
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, p, 1, 1, 0, 1;
	wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1}, %rd1, %rd2, %r1, 0, p, 1, 1, 0, 1;
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	red.global.add.f32 	[%rd1], %f1;
	add.s32 	%r1, %r1, 1;
	ret;
}
)";

TEST(PTXFeaturesTest, CountsByKernelAndLoop) {
  auto kernels = countPTX(kText);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  ASSERT_EQ(kernels->size(), 2u);
  const PTXKernel &first = (*kernels)[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.maxThreads, 128);
  EXPECT_EQ(first.sharedBytes, 64 * 4 + 8);
  // Outside of loops, in the outer one or the wait, in the inner one.
  ASSERT_EQ(first.byDepth.size(), 3u);
  EXPECT_EQ(first.byDepth[0].globalRead, 16);
  EXPECT_EQ(first.byDepth[0].globalWritten, 2);
  EXPECT_EQ(first.byDepth[0].sharedWritten, 4);
  EXPECT_EQ(first.byDepth[0].sharedRead, 16);
  EXPECT_EQ(first.byDepth[0].special, 1);
  EXPECT_EQ(first.byDepth[0].conversions, 1);
  EXPECT_EQ(first.byDepth[1].f32Flops, 2);
  EXPECT_EQ(first.byDepth[1].f16Flops, 4);
  EXPECT_EQ(first.byDepth[1].barriers, 1);
  EXPECT_EQ(first.byDepth[2].tensorFlops, 16 * 8 * 16 * 2 / 32);
  EXPECT_EQ(first.byDepth[2].sparseTensorFlops, 16 * 8 * 32 / 32);
  EXPECT_EQ(first.byDepth[2].copied, 16);
  EXPECT_EQ(first.getTotal().branches, 5);
  EXPECT_EQ(first.getTotal().instructions, 18);

  const PTXKernel &second = (*kernels)[1];
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.maxThreads, 0);
  EXPECT_EQ(second.getTotal().tensorFlops, 64 * 128 * 16 * 2 / 128);
  EXPECT_EQ(second.getTotal().sparseTensorFlops, 64 * 8 * 32 / 128);
  EXPECT_EQ(second.getTotal().bulkCopies, 1);
  EXPECT_EQ(second.getTotal().atomics, 1);
  EXPECT_EQ(second.getTotal().integer, 1);
  EXPECT_EQ(toJSON(*kernels).size(), 2u);
}

std::string getError(llvm::StringRef text) {
  auto kernels = countPTX(text);
  return kernels ? "" : llvm::toString(kernels.takeError());
}

TEST(PTXFeaturesTest, NamesWhatIsWrong) {
  EXPECT_EQ(getError(""), "line 1: no kernel: expected PTX with an .entry");
  EXPECT_EQ(getError(".entry k() {\n add.s32 %r1, %r1, 1"),
            "line 2: 'add' does not end with ';'");
  EXPECT_EQ(getError(".entry k() {\n ret;\n"),
            "line 3: the text ends inside of '{'");
  EXPECT_EQ(getError(".version 8.0\n}"), "line 2: '}' without a '{'");
  EXPECT_EQ(getError("\n.entry k()"),
            "line 2: '.entry' has neither a body nor a ';'");
  EXPECT_EQ(getError("\x7f!"), "line 1: a statement does not end with ';'");
  EXPECT_EQ(getError(".entry (.param .b64 a) {}"),
            "line 1: a kernel has no name: expected one behind .entry");
  EXPECT_EQ(getError(".section .debug_info\n{ .b8 1"),
            "line 1: 'section' does not end with '}'");
  EXPECT_EQ(getError(".entry k()\n.maxntid 128, 4096 { ret; }"),
            "line 1: .maxntid of 4096: legal are 1 to 1024 threads");
  EXPECT_EQ(getError(".entry k() .reqntid x { ret; }"),
            "line 1: .reqntid of x: legal are 1 to 1024 threads");
  EXPECT_EQ(getError(".entry k() {\n.shared .b8 a[9999999999]; }"),
            "line 2: 'a[9999999999]' has no size below 2^31 bytes");
  EXPECT_EQ(getError(".entry k() {\n.shared .b64 a[65536][65536]; }"),
            "line 2: 'a[65536][65536]' has no size below 2^31 bytes");
}

TEST(PTXFeaturesTest, ReadsWhatOtherCompilersWrite) {
  // Variables with initial values, and a table of debug information.
  auto kernels = countPTX(R"(
.visible .global .align 4 .b8 table[4] = {1, 2, 3, 4};
.visible .const .align 4 .b32 entry = 3;
.visible .entry k() {
	.shared .align 4 .f32 tile[16][2], sum;
	.shared .v4 .b16 four;
	ret;
}
	.file	1 "k.py"
	.section	.debug_abbrev
	{
.b8 1
.b32 .debug_info
	}
	.section	.debug_info { }
)");
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ(kernels->front().name, "k");
  EXPECT_EQ(kernels->front().sharedBytes, 128 + 4 + 8);
  EXPECT_EQ(kernels->front().getTotal().instructions, 1);
}

TEST(PTXFeaturesTest, AnyPartOfATextIsReadOrRefused) {
  llvm::StringRef text = kText;
  for (size_t begin = 0; begin < text.size(); begin += 7)
    for (size_t size = 0; begin + size < text.size(); size += 131)
      (void)getError(text.substr(begin, size));
}

} // namespace
