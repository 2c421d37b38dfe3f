//===- TensorCopyTest.cpp - cp.async.bulk.tensor --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The places of the data were seen on an H200.
//
//===----------------------------------------------------------------------===//

#include "Memory/TensorMap.h"
#include "SharedKernel.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

constexpr unsigned width = 256, height = 64; ///< A tensor of 16-bit elements.
constexpr uint16_t untouched = 0xeeee;
constexpr unsigned sharedBytes = 4096;

/// Shared memory is set to `untouched`, a box is loaded to %target, and all of
/// shared memory is stored to %out.
std::string makeLoad(const std::string &offset, const std::string &coordinates,
                     const std::string &bytes, const std::string &mask = "",
                     const std::string &fence = "nvvm.fence.proxy {kind = "
                                                "#nvvm.proxy_kind<async>}") {
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @load(%map: !llvm.ptr, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %mbar = llvm.getelementptr %shared[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %target = llvm.getelementptr %shared[)" +
         offset + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %cminus8 = llvm.mlir.constant(-8 : i32) : i32
    %cminus3 = llvm.mlir.constant(-3 : i32) : i32
    %c58 = llvm.mlir.constant(58 : i32) : i32
    %c2048 = llvm.mlir.constant(2048 : i32) : i32
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    %bytes = llvm.mlir.constant()" +
         bytes + R"( : i32) : i32
    %mask = llvm.mlir.constant(3 : i16) : i16
    %cluster = llvm.addrspacecast %target : !llvm.ptr<3> to !llvm.ptr<7>
    %sentinel = llvm.mlir.constant(-286331154 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %first = llvm.icmp "eq" %tid, %c0 : i32
    %isFirstCTA = llvm.icmp "eq" %rank, %c0 : i32
    llvm.br ^fill(%c0 : i32)
  ^fill(%i: i32):
    %index = llvm.add %i, %tid : i32
    %word = llvm.getelementptr %shared[%index] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %sentinel, %word : i32, !llvm.ptr<3>
    %next = llvm.mlir.constant(32 : i32) : i32
    %i2 = llvm.add %i, %next : i32
    %words = llvm.mlir.constant(1024 : i32) : i32
    %more = llvm.icmp "ult" %i2, %words : i32
    llvm.cond_br %more, ^fill(%i2 : i32), ^filled
  ^filled:
    llvm.cond_br %first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %mbar, %c1 : !llvm.ptr<3>, i32
    llvm.br ^ready
  ^ready:
    )" + fence +
         R"(
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.cond_br %first, ^expect, ^wait
  ^expect:
    nvvm.prefetch tensormap, %map : !llvm.ptr
    %s = nvvm.mbarrier.arrive.expect_tx %mbar, %bytes : !llvm.ptr<3>, i32 -> i64
    llvm.cond_br %isFirstCTA, ^copy, ^wait
  ^copy:
    nvvm.cp.async.bulk.tensor.prefetch %map, box[)" +
         coordinates + R"(] : !llvm.ptr
    nvvm.cp.async.bulk.tensor.shared.cluster.global %cluster, %map, %mbar, box[)" +
         coordinates + "] " + (mask.empty() ? "" : "multicast_mask = " + mask) +
         R"( : !llvm.ptr<7>, !llvm.ptr
    llvm.br ^wait
  ^wait:
    nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : !llvm.ptr<3>, i32, i32
    %block = llvm.mul %rank, %words : i32
    llvm.br ^copyOut(%c0 : i32)
  ^copyOut(%j: i32):
    %from = llvm.add %j, %tid : i32
    %place = llvm.getelementptr %shared[%from] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %place : !llvm.ptr<3> -> i32
    %at = llvm.add %from, %block : i32
    %to = llvm.getelementptr %out[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %value, %to : i32, !llvm.ptr
    %j2 = llvm.add %j, %next : i32
    %more2 = llvm.icmp "ult" %j2, %words : i32
    llvm.cond_br %more2, ^copyOut(%j2 : i32), ^end
  ^end:
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.return
  })";
}

class TensorCopyTest : public ::testing::Test {
protected:
  /// The kernel's fault; `map` gets the address of the tensor, whose elements
  /// are 100 times the row plus the number of 8 elements in it.
  std::string run(const std::string &kernel, TensorMap map, unsigned ctas = 1) {
    runner = std::make_unique<KernelRunner>(kernel);
    if (map.base == 0) {
      std::vector<uint16_t> numbers(width * height);
      for (unsigned y = 0; y < height; ++y)
        for (unsigned x = 0; x < width; ++x)
          numbers[y * width + x] = y * 100 + x / 8;
      map.base = reinterpret_cast<uint64_t>(runner->upload<uint16_t>(numbers));
    }
    auto *maps = runner->upload<TensorMap>(map);
    out = runner->allocate<uint16_t>(ctas * sharedBytes / 2);
    return runner->run("load", makeShape(32, sharedBytes + 8, ctas, ctas), maps,
                       out);
  }
  /// The value in the 16 bytes at `offset`.
  uint16_t at(unsigned offset, unsigned cta = 0) const {
    return out[(cta * sharedBytes + offset) / 2];
  }
  std::vector<uint16_t> line(unsigned offset, unsigned cta = 0) const {
    std::vector<uint16_t> chunks;
    for (unsigned i = 0; i < 128; i += 16)
      chunks.push_back(at(offset + i, cta));
    return chunks;
  }

  std::unique_ptr<KernelRunner> runner;
  uint16_t *out = nullptr;
};

TensorMap makeMap(unsigned boxWidth, unsigned boxHeight,
                  TensorMapSwizzle swizzle = TensorMapSwizzle::None) {
  TensorMap map = {};
  map.sizes[0] = width;
  map.sizes[1] = height;
  map.strideBytes[0] = width * 2;
  map.box[0] = boxWidth;
  map.box[1] = boxHeight;
  map.elementStrides[0] = map.elementStrides[1] = 1;
  map.rank = 2;
  map.magic = TensorMap::expectedMagic;
  map.type = TensorMapType::UInt16;
  map.elementBytes = 2;
  map.swizzle = swizzle;
  return map;
}

using Line = std::vector<uint16_t>;
constexpr uint16_t no = untouched;

TEST_F(TensorCopyTest, Swizzles) {
  ASSERT_EQ(run(makeLoad("384", "%c0, %c0", "2048"),
                makeMap(64, 16, TensorMapSwizzle::Bytes128)),
            "");
  EXPECT_EQ(line(256), Line(8, no));
  EXPECT_EQ(line(384), (Line{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(line(512), (Line{104, 105, 106, 107, 100, 101, 102, 103}));
  EXPECT_EQ(line(1792), (Line{1106, 1107, 1104, 1105, 1102, 1103, 1100, 1101}));

  ASSERT_EQ(run(makeLoad("0", "%c0, %c0", "1024"),
                makeMap(32, 16, TensorMapSwizzle::Bytes64)),
            "");
  EXPECT_EQ(line(128), (Line{201, 200, 203, 202, 301, 300, 303, 302}));
  EXPECT_EQ(line(256), (Line{402, 403, 400, 401, 502, 503, 500, 501}));

  ASSERT_EQ(run(makeLoad("0", "%c0, %c0", "512"),
                makeMap(16, 16, TensorMapSwizzle::Bytes32)),
            "");
  EXPECT_EQ(line(0), (Line{0, 1, 100, 101, 200, 201, 300, 301}));
  EXPECT_EQ(line(128), (Line{401, 400, 501, 500, 601, 600, 701, 700}));
}

TEST_F(TensorCopyTest, LeavesGapsBehindShortRows) {
  ASSERT_EQ(run(makeLoad("0", "%c0, %c0", "1024"),
                makeMap(32, 16, TensorMapSwizzle::Bytes128)),
            "");
  EXPECT_EQ(line(256), (Line{202, 203, 200, 201, no, no, no, no}));
  EXPECT_EQ(line(512), (Line{no, no, no, no, 400, 401, 402, 403}));
  EXPECT_EQ(line(1920), (Line{no, no, no, no, 1503, 1502, 1501, 1500}));
  ASSERT_EQ(run(makeLoad("0", "%c0, %c0", "256"),
                makeMap(8, 16, TensorMapSwizzle::Bytes32)),
            "");
  EXPECT_EQ(line(0), (Line{0, no, 100, no, 200, no, 300, no}));
  EXPECT_EQ(line(128), (Line{no, 400, no, 500, no, 600, no, 700}));
}

TEST_F(TensorCopyTest, FillsWhatIsOutside) {
  TensorMap map = makeMap(64, 16, TensorMapSwizzle::Bytes128);
  ASSERT_EQ(run(makeLoad("0", "%cminus8, %cminus3", "2048"), map), "");
  EXPECT_EQ(line(256), Line(8, 0));
  EXPECT_EQ(line(384), (Line{2, 1, 0, 0, 6, 5, 4, 3}));
  EXPECT_EQ(line(512), (Line{103, 104, 105, 106, 0, 100, 101, 102}));

  map = makeMap(64, 8);
  map.elementStrides[1] = 3;
  map.type = TensorMapType::Float16;
  map.fill = TensorMapFill::NaN;
  ASSERT_EQ(run(makeLoad("0", "%c0, %c58", "384"), map), "");
  EXPECT_EQ(line(0)[7], 5807);
  EXPECT_EQ(line(128)[0], 6100);
  EXPECT_EQ(line(256), Line(8, 0x7ff7));
  EXPECT_EQ(line(384), Line(8, no));
}

TEST_F(TensorCopyTest, SendsToSeveralCTAs) {
  TensorMap map = makeMap(64, 16, TensorMapSwizzle::Bytes128);
  ASSERT_EQ(run(makeLoad("1024", "%c0, %c0", "2048", "%mask"), map, 2), "");
  for (unsigned cta : {0, 1})
    EXPECT_EQ(line(1152, cta), (Line{101, 100, 103, 102, 105, 104, 107, 106}));
  EXPECT_TRUE(contains(run(makeLoad("1024", "%c0, %c0", "2048"), map, 2),
                       "phase 0 of the mbarrier at 0x1000 of CTA 1 of the "
                       "cluster: 1 of 1 arrivals, 2048 bytes of copies are "
                       "missing"));
}

TEST_F(TensorCopyTest, RoundsToTF32) {
  TensorMap map = makeMap(8, 1);
  map.type = TensorMapType::TFloat32;
  map.elementBytes = 4;
  map.sizes[0] = 8;
  map.sizes[1] = 1;
  const uint32_t in[] = {0x3f801000, 0x3f801001, 0x3f803000, 0x807fffff,
                         0x7f7fffff, 0xff800fff, 0x00000001, 0xbf801000};
  const uint32_t expected[] = {0x3f800000, 0x3f802000, 0x3f804000, 0x80800000,
                               0x7f800000, 0x7fffe000, 0x00000000, 0xbf800000};
  // The tensor is where the kernel's memory has it.
  runner = std::make_unique<KernelRunner>(makeLoad("0", "%c0, %c0", "32"));
  map.base = reinterpret_cast<uint64_t>(runner->upload<uint32_t>(in));
  auto *maps = runner->upload<TensorMap>(map);
  auto *bits = runner->allocate<uint32_t>(sharedBytes / 4);
  ASSERT_EQ(runner->run("load", makeShape(32, sharedBytes + 8), maps, bits),
            "");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(bits[i], expected[i]) << i;
}

TEST_F(TensorCopyTest, ChecksWhatItCopies) {
  TensorMap map = makeMap(64, 16);
  EXPECT_TRUE(contains(run(makeLoad("64", "%c0, %c0", "2048"), map),
                       "misaligned shared memory of a tensor copy at 0x40"));
  EXPECT_TRUE(contains(run(makeLoad("0", "%c0, %c0, %c0", "2048"), map),
                       "has 3 coordinates for a tensor map of rank 2"));
  EXPECT_TRUE(contains(run(makeLoad("0", "%c0, %c0", "1024"), map),
                       "1024 bytes came that no expect_tx announced"));
  EXPECT_TRUE(contains(run(makeLoad("3072", "%c0, %c0", "2048"), map),
                       "is out of bounds"));
  EXPECT_TRUE(contains(run(makeLoad("0", "%c0, %c0", "2048", "", ""), map),
                       "fence.proxy.async"));
  map.magic = 0;
  EXPECT_TRUE(contains(run(makeLoad("0", "%c0, %c0", "2048"), map),
                       "there is no tensor map at"));
}

/// 32 threads store 32 numbers in 4 rows of 32 bytes, one copies them.
std::string makeStore(const std::string &copy) {
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @store(%map: !llvm.ptr, %in: !llvm.ptr) attributes {nvvm.kernel} {
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %cminus8 = llvm.mlir.constant(-8 : i32) : i32
    %mask = llvm.mlir.constant(-1 : i32) : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %first = llvm.icmp "eq" %tid, %c0 : i32
    %from = llvm.getelementptr %in[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %slot = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %from : !llvm.ptr -> i32
    llvm.store %value, %slot : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.bar.warp.sync %mask : i32
    llvm.cond_br %first, ^copy, ^end
  ^copy:
    )" + copy +
         R"(
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    llvm.br ^end
  ^end:
    llvm.return
  })";
}

class TensorStoreTest : public ::testing::Test {
protected:
  /// A tensor of 2 rows of 12 numbers, from boxes of 4 rows of 8.
  std::string run(const std::string &copy, TensorMapType type,
                  ArrayRef<uint32_t> tensor, ArrayRef<uint32_t> box) {
    KernelRunner runner(makeStore(copy));
    TensorMap map = makeMap(8, 4);
    map.type = type;
    map.elementBytes = 4;
    map.sizes[0] = 12;
    map.sizes[1] = 2;
    map.strideBytes[0] = 48;
    uint32_t *memory = runner.upload<uint32_t>(tensor);
    map.base = reinterpret_cast<uint64_t>(memory);
    auto *maps = runner.upload<TensorMap>(map);
    uint32_t *in = runner.upload<uint32_t>(box);
    std::string fault = runner.run("store", makeShape(32, 128), maps, in);
    result.assign(memory, memory + tensor.size());
    return fault;
  }
  std::vector<uint32_t> result;
};

TEST_F(TensorStoreTest, StoresWhatIsInside) {
  std::vector<uint32_t> tensor(24, 7), box(32);
  for (int i = 0; i < 32; ++i)
    box[i] = 100 + i;
  const char store[] = "nvvm.cp.async.bulk.tensor.global.shared.cta %map, "
                       "%shared, box[%c4, %c1] : !llvm.ptr, !llvm.ptr<3>";
  ASSERT_EQ(run(store, TensorMapType::UInt32, tensor, box), "");
  for (unsigned i = 0; i < 24; ++i)
    EXPECT_EQ(result[i], i < 16 ? 7 : 100 + i - 16) << i;
  const char before[] = "nvvm.cp.async.bulk.tensor.global.shared.cta %map, "
                        "%shared, box[%cminus8, %c1] : !llvm.ptr, !llvm.ptr<3>";
  EXPECT_TRUE(contains(run(before, TensorMapType::UInt32, tensor, box),
                       "its coordinate 0 is -8: the hardware writes no box "
                       "that begins before the tensor"));
}

TEST_F(TensorStoreTest, Reduces) {
  auto makeReduce = [](const std::string &kind) {
    return "nvvm.cp.async.bulk.tensor.reduce %map, %shared, box[%c0, %c0] "
           "{redKind = #nvvm.tma_redux_kind<" +
           kind + ">} : !llvm.ptr, !llvm.ptr<3>";
  };
  std::vector<uint32_t> tensor(24, 0x3f800000), box(32, 0x40000000);
  ASSERT_EQ(run(makeReduce("add"), TensorMapType::Float32, tensor, box), "");
  EXPECT_EQ(result[0], 0x40400000u);
  EXPECT_EQ(result[8], 0x3f800000u);
  EXPECT_EQ(result[12], 0x40400000u);
  EXPECT_TRUE(
      contains(run(makeReduce("min"), TensorMapType::Float32, tensor, box),
               "reduces by min, which a tensor map of data type 7 does "
               "not allow"));
  ASSERT_EQ(run(makeReduce("max"), TensorMapType::UInt32, tensor, box), "");
  EXPECT_EQ(result[0], 0x40000000u);
  ASSERT_EQ(run(makeReduce("xor"), TensorMapType::UInt32, tensor, box), "");
  EXPECT_EQ(result[0], 0x7f800000u);
}

TEST_F(TensorCopyTest, RefusesModesThatAreNotEmulated) {
  KernelRunner runner(R"(
  llvm.func @f(%map: !llvm.ptr, %shared: !llvm.ptr<3>, %target: !llvm.ptr<7>, %c: i32, %o: i16) attributes {nvvm.kernel} {
    nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %map, %shared, box[%c, %c, %c] im2col[%o, %o] {mode = #nvvm.tma_load_mode<im2col_w>} : !llvm.ptr<7>, !llvm.ptr
    llvm.return
  })",
                      /*wantError=*/true);
  EXPECT_TRUE(contains(runner.error, "in mode im2col_w is not emulated: only "
                                     "tile and im2col are"));
}

} // namespace
