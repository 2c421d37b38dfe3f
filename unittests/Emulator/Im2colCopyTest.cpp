//===- Im2colCopyTest.cpp - tensor copies in mode im2col ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies are compared with a loop over the positions of a window.
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"
#include "KernelRunner.h"
#include "Memory/TensorMap.h"
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

constexpr int sharedBytes = 16384;
constexpr int images = 2, channels = 24;

/// One thread copies to shared memory, and that to %out. `copy` has a tensor
/// map at %map.
std::string makeKernel(const std::string &copy) {
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @load(%map: !llvm.ptr, %out: !llvm.ptr, %bytes: i32, %c: i32, %w: i32, %h: i32, %n: i32, %ow: i16, %oh: i16) attributes {nvvm.kernel} {
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %mbar = llvm.getelementptr %shared[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %target = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    nvvm.mbarrier.init %mbar, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    %state = nvvm.mbarrier.arrive.expect_tx %mbar, %bytes : !llvm.ptr<3>, i32 -> i64
    )" + copy +
         R"(
    nvvm.mbarrier.try_wait.parity %mbar, %c0, %ticks : !llvm.ptr<3>, i32, i32
    %words = llvm.lshr %bytes, %two : i32
    llvm.br ^copy(%c0 : i32)
  ^copy(%i: i32):
    %from = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %from : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %value, %to : i32, !llvm.ptr
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "ult" %next, %words : i32
    llvm.cond_br %more, ^copy(%next : i32), ^done
  ^done:
    llvm.return
  })";
}

const char *const im2col = R"(
    nvvm.cp.async.bulk.tensor.prefetch %map, box[%c, %w, %h, %n] im2col[%ow, %oh] {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr
    nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %map, %mbar, box[%c, %w, %h, %n] im2col[%ow, %oh] {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr
)";
const char *const tile = R"(
    nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %map, %mbar, box[%c, %w, %h, %n] : !llvm.ptr<7>, !llvm.ptr
)";

/// Numbers of dimensions (w, h), as all here.
struct Case {
  int size[2], lower[2], upper[2], stride[2];
  int pixels, boxChannels;
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  int c, start[2], n, offset[2];

  int getLast(int i) const { return size[i] - 1 + upper[i]; }
};

class Im2colCopyTest : public ::testing::Test {
protected:
  void start(const std::string &copy = im2col) {
    runner = std::make_unique<KernelRunner>(makeKernel(copy));
    out = runner->allocate<uint16_t>(sharedBytes / 2);
    addTensorMapFunctions(api);
  }

  /// The map of a tensor whose elements are numbers from 1 on.
  nms::cuda::Result encode(const Case &c, nms::cuda::TensorMap &map) {
    tensor.resize(size_t(images) * c.size[1] * c.size[0] * channels);
    for (size_t i = 0; i < tensor.size(); ++i)
      tensor[i] = uint16_t(i + 1);
    const uint64_t sizes[] = {channels, uint64_t(c.size[0]),
                              uint64_t(c.size[1]), images};
    const uint64_t strides[] = {channels * 2, channels * 2 * sizes[1],
                                channels * 2 * sizes[1] * sizes[2]};
    const uint32_t steps[] = {1, uint32_t(c.stride[0]), uint32_t(c.stride[1]),
                              1};
    auto *base = runner->upload<uint16_t>(tensor);
    return api.tensorMapEncodeIm2col(
        &map, int(TensorMapType::UInt16), 4, base, sizes, strides, c.lower,
        c.upper, c.boxChannels, c.pixels, steps, 0, int(c.swizzle), 0, 0);
  }

  std::string run(const Case &c, const nms::cuda::TensorMap &map) {
    auto *uploaded = runner->upload<nms::cuda::TensorMap>(map);
    return runner->run("load", makeShape(1, sharedBytes + 8), uploaded, out,
                       c.pixels * c.boxChannels * 2, c.c, c.start[0],
                       c.start[1], c.n, int16_t(c.offset[0]),
                       int16_t(c.offset[1]));
  }
  std::string run(const Case &c) {
    nms::cuda::TensorMap map;
    EXPECT_EQ(encode(c, map), nms::cuda::success);
    return run(c, map);
  }

  uint16_t read(int n, int h, int w, int c, const Case &of) const {
    bool isInside = n < images && h >= 0 && h < of.size[1] && w >= 0 &&
                    w < of.size[0] && c >= 0 && c < channels;
    return isInside
               ? tensor[((n * of.size[1] + h) * of.size[0] + w) * channels + c]
               : 0;
  }

  /// Rows without gaps.
  void compare(const Case &c) {
    int w = c.start[0], h = c.start[1], n = c.n;
    for (int pixel = 0; pixel < c.pixels; ++pixel) {
      for (int i = 0; i < c.boxChannels; ++i) {
        unsigned at = (pixel * c.boxChannels + i) * 2;
        unsigned chunks = (1u << unsigned(c.swizzle)) - 1;
        at ^= ((at >> 7) & chunks) << 4;
        ASSERT_EQ(out[at / 2],
                  read(n, h + c.offset[1], w + c.offset[0], c.c + i, c))
            << "pixel " << pixel << ", channel " << i;
      }
      w += c.stride[0];
      if (w <= c.getLast(0))
        continue;
      w = c.lower[0];
      h += c.stride[1];
      if (h <= c.getLast(1))
        continue;
      h = c.lower[1];
      ++n;
    }
  }
  static void expect(const std::string &fault, const std::string &text) {
    EXPECT_NE(fault.find(text), std::string::npos) << fault;
  }

  std::unique_ptr<KernelRunner> runner;
  nms::cuda::Api api;
  std::vector<uint16_t> tensor;
  uint16_t *out = nullptr;
};

/// A window of 3x3 with a padding of 1 over images of 7x5.
Case makeCase() {
  return {{7, 5}, {-1, -1}, {-1, -1}, {1, 1}, 64, 16, TensorMapSwizzle::Bytes32,
          0,      {-1, -1}, 0,        {0, 0}};
}

TEST_F(Im2colCopyTest, GoesOverRowsAndImages) {
  start();
  Case c = makeCase();
  ASSERT_EQ(run(c), "");
  compare(c);
  // From the middle of a row to behind the last image.
  c.start[0] = 2;
  c.start[1] = 1;
  c.n = 1;
  c.offset[0] = 1;
  c.offset[1] = 2;
  ASSERT_EQ(run(c), "");
  compare(c);
}

TEST_F(Im2colCopyTest, EqualsALoop) {
  start();
  std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed)
  auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int i = 0; i < 300; ++i) {
    Case c = {};
    for (int d : {0, 1}) {
      int window = draw(1, 4), dilation = draw(1, 3), padding = draw(0, 3);
      int reach = (window - 1) * dilation;
      c.size[d] = draw(std::max(1, reach - 2 * padding + 1), 12);
      c.lower[d] = -padding;
      c.upper[d] = padding - reach;
      c.stride[d] = draw(1, 2);
      c.offset[d] = draw(0, window - 1) * dilation;
      int steps = (c.getLast(d) - c.lower[d]) / c.stride[d];
      c.start[d] = c.lower[d] + draw(0, steps) * c.stride[d];
    }
    c.swizzle = TensorMapSwizzle(draw(1, 3));
    c.boxChannels = 8 << int(c.swizzle);
    c.pixels = draw(1, 8) * 16;
    c.c = draw(0, 2) * 8;
    c.n = draw(0, images);
    SCOPED_TRACE(i);
    ASSERT_EQ(run(c), "");
    ASSERT_NO_FATAL_FAILURE(compare(c));
  }
}

TEST_F(Im2colCopyTest, ChecksWhatItCopies) {
  start();
  Case c = makeCase();
  c.start[0] = 6;
  expect(run(c), "its coordinate 1 is 6, which is no pixel that the tensor map "
                 "goes over: -1 to 5 in steps of 1");
  c = makeCase();
  c.stride[1] = 2;
  c.start[1] = 0;
  expect(run(c), "its coordinate 2 is 0, which is no pixel that the tensor map "
                 "goes over: -1 to 3 in steps of 2");
  c = makeCase();
  c.offset[1] = 256;
  expect(run(c), "its im2col offset 1 is 256, but a tensor map of rank 4 takes "
                 "0 to 255");
}

TEST_F(Im2colCopyTest, TellsModesApart) {
  start();
  Case c = makeCase();
  nms::cuda::TensorMap map;
  ASSERT_EQ(encode(c, map), nms::cuda::success);
  TensorMap tiled;
  std::memcpy(&tiled, &map, sizeof(map));
  tiled.mode = TensorMapMode::Tiled;
  for (int i : {0, 1, 2, 3})
    tiled.box[i] = 16;
  std::memcpy(&map, &tiled, sizeof(map));
  expect(run(c, map), "is in mode im2col, but the tensor map at");
  expect(run(c, map), "was encoded by cuTensorMapEncodeTiled");
  start(tile);
  expect(run(c), "is in mode tile, but the tensor map at");
  expect(run(c), "was encoded by cuTensorMapEncodeIm2col");
  start(R"(
    %global = llvm.addrspacecast %map : !llvm.ptr to !llvm.ptr<1>
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.rank"(%global, %two) : (!llvm.ptr<1>, i32) -> ()
)");
  expect(run(c),
         "was encoded by cuTensorMapEncodeIm2col, and tensormap.replace "
         "changes those of cuTensorMapEncodeTiled alone");
}

TEST_F(Im2colCopyTest, EncodesWhatTheDriverTakes) {
  start();
  nms::cuda::TensorMap map;
  auto change = [&](auto body) {
    Case c = makeCase();
    body(c);
    return encode(c, map);
  };
  constexpr nms::cuda::Result legal = nms::cuda::success;
  constexpr nms::cuda::Result wrong = nms::cuda::errorInvalidValue;
  EXPECT_EQ(change([](Case &) {}), legal);
  EXPECT_EQ(change([](Case &c) { c.pixels = 1024; }), legal);
  EXPECT_EQ(change([](Case &c) { c.pixels = 1025; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.pixels = 0; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.boxChannels = 32; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.boxChannels = 12; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.lower[0] = -128; }), legal);
  EXPECT_EQ(change([](Case &c) { c.lower[0] = -129; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.upper[1] = 128; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.upper[1] = 1 << 20; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.upper[1] = -6; }), wrong);
  EXPECT_EQ(change([](Case &c) { c.stride[0] = 9; }), wrong);
  const uint64_t sizes[] = {16, 16};
  const uint32_t steps[] = {1, 1};
  const int corner[] = {0};
  EXPECT_EQ(api.tensorMapEncodeIm2col(&map, int(TensorMapType::UInt16), 2,
                                      nullptr, sizes, sizes, corner, corner, 16,
                                      16, steps, 0, 0, 0, 0),
            wrong);
}

} // namespace
