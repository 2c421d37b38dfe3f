//===- BankConflictsTest.cpp - banks of shared memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/BankConflicts.h"
#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

/// Lane i accesses `bytes` at address(i), where bit i of `lanes` is set.
BankUse count(uint32_t bytes, llvm::function_ref<uint32_t(unsigned)> address,
              uint32_t lanes = ~0u) {
  WarpAccess access;
  access.lanes = lanes;
  access.bytes = bytes;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    access.addresses[lane] = address(lane);
  return countWavefronts(access);
}

TEST(BankConflicts, Words) {
  // Side by side, the same one, and strides of 2 and 33 words.
  EXPECT_EQ(count(4, [](unsigned i) { return 4 * i; }).wavefronts, 1);
  EXPECT_EQ(count(4, [](unsigned) { return 12; }).wavefronts, 1);
  EXPECT_EQ(count(4, [](unsigned i) { return 8 * i; }).wavefronts, 2);
  EXPECT_EQ(count(4, [](unsigned i) { return 4 * 33 * i; }).wavefronts, 1);
  // A stride of 32 words: all lanes in one bank.
  BankUse worst = count(4, [](unsigned i) { return 128 * i; });
  EXPECT_EQ(worst.wavefronts, 32);
  EXPECT_EQ(worst.conflicts, 31);
  // Bytes and halves of the same words.
  EXPECT_EQ(count(1, [](unsigned i) { return i; }).wavefronts, 1);
  EXPECT_EQ(count(2, [](unsigned i) { return 2 * i; }).wavefronts, 1);
  // For the last stride, only the lanes that take part count.
  EXPECT_EQ(count(4, [](unsigned i) { return 128 * i; }, 0x7).wavefronts, 3);
}

TEST(BankConflicts, WideAccesses) {
  BankUse halves = count(8, [](unsigned i) { return 8 * i; });
  EXPECT_EQ(halves.wavefronts, 2);
  EXPECT_EQ(halves.conflicts, 0);
  BankUse quarters = count(16, [](unsigned i) { return 16 * i; });
  EXPECT_EQ(quarters.wavefronts, 4);
  EXPECT_EQ(quarters.conflicts, 0);
  // Rows of 128 bytes: eight lanes of a quarter in the same four banks.
  BankUse rows = count(16, [](unsigned i) { return 128 * i; });
  EXPECT_EQ(rows.wavefronts, 32);
  EXPECT_EQ(rows.conflicts, 28);
  // Only the first quarter takes part.
  EXPECT_EQ(count(16, [](unsigned i) { return 16 * i; }, 0xff).wavefronts, 1);
}

class BankKernelTest : public SharedKernelTest {
protected:
  /// How `op` uses the banks in a kernel around `body`.
  BankUse use(const std::string &body, StringRef op, unsigned threads = 32) {
    KernelRunner runner(makeKernel(body));
    std::vector<int32_t> numbers(4096, 1);
    int32_t *in = runner.upload<int32_t>(numbers);
    int32_t *out = runner.allocate<int32_t>(4096);
    void *arguments[] = {static_cast<void *>(&in), static_cast<void *>(&out)};
    BankTable table;
    EXPECT_EQ(launch(*runner.module->lookup("k"), makeShape(threads, 8192),
                     arguments, runner.memory, "sm_90a", 1,
                     /*lastFirst=*/false, &table),
              "");
    for (const auto &[name, use] : table.getUses())
      if (name == op)
        return use;
    return {};
  }
};

/// Each lane stores at `stride` words from its neighbour.
std::string makeStore(const std::string &stride) {
  return "%at = llvm.mul %tid, " + stride + R"( : i32
    %place = llvm.getelementptr %shared[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %place : i32, !llvm.ptr<3>
)";
}

TEST_F(BankKernelTest, StridesOfLanes) {
  BankUse side = use(makeStore("%c1"), "st.shared", 64);
  EXPECT_EQ(side.accesses, 2);
  EXPECT_EQ(side.wavefronts, 2);
  EXPECT_EQ(side.conflicts, 0);
  BankUse column = use(makeStore("%c32"), "st.shared");
  EXPECT_EQ(column.accesses, 1);
  EXPECT_EQ(column.wavefronts, 32);
  EXPECT_EQ(column.conflicts, 31);
  // The value is read back, through a generic pointer too.
  std::string generic = makeStore("%c32") + R"(
    %pointer = llvm.addrspacecast %place : !llvm.ptr<3> to !llvm.ptr
    %value = llvm.load %pointer : !llvm.ptr -> i32
    llvm.store %value, %to : i32, !llvm.ptr
)";
  EXPECT_EQ(use(generic, "ld.shared").wavefronts, 32);
}

TEST_F(BankKernelTest, VectorsOfLessAlignmentAreSeveralAccesses) {
  std::string body = R"(
    %place = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %zero = llvm.mlir.zero : vector<4xi32>
    llvm.store %zero, %place {alignment = ALIGN : i64} : vector<4xi32>, !llvm.ptr<3>
)";
  auto align = [&](const std::string &bytes) {
    std::string text = body;
    return text.replace(text.find("ALIGN"), 5, bytes);
  };
  BankUse whole = use(align("16"), "st.shared");
  EXPECT_EQ(whole.accesses, 1);
  EXPECT_EQ(whole.wavefronts, 4);
  BankUse words = use(align("4"), "st.shared");
  EXPECT_EQ(words.accesses, 4);
  EXPECT_EQ(words.wavefronts, 16);
  EXPECT_EQ(words.conflicts, 12);
}

TEST_F(BankKernelTest, CopiesAndMatrices) {
  std::string body = R"(
    %wide = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %row = llvm.getelementptr %globalIn[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    nvvm.cp.async.shared.global %wide, %row, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %m = nvvm.ldmatrix %wide {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 2 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
)";
  BankUse copies = use(body, "cp.async");
  EXPECT_EQ(copies.accesses, 1);
  EXPECT_EQ(copies.wavefronts, 4);
  EXPECT_EQ(copies.conflicts, 0);
  // Two matrices: 16 lanes name a row each.
  BankUse matrices = use(body, "ldmatrix");
  EXPECT_EQ(matrices.accesses, 1);
  EXPECT_EQ(matrices.wavefronts, 2);
  EXPECT_EQ(matrices.conflicts, 0);
}

/// Lanes that leave a loop early must not be put together with those of its
/// next execution: after a barrier all count from the beginning.
TEST_F(BankKernelTest, DivergentLanesMeetAgain) {
  std::string body = R"(
    %isLow = llvm.icmp "ult" %tid, %c8 : i32
    llvm.br ^outer(%c0 : i32)
  ^outer(%i: i32):
    llvm.cond_br %isLow, ^guarded, ^after
  ^guarded:
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    llvm.br ^after
  ^after:
    nvvm.barrier0
    llvm.store %tid, %opposite : i32, !llvm.ptr<3>
    nvvm.barrier0
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "ult" %next, %c3x : i32
    llvm.cond_br %more, ^outer(%next : i32), ^end
  ^end:
)";
  std::string three = "    %c3x = llvm.mlir.constant(3 : i32) : i32\n";
  BankUse stores = use(three + body, "st.shared");
  EXPECT_EQ(stores.accesses, 6);
  EXPECT_EQ(stores.wavefronts, 6);
}

} // namespace
