//===- EncodeMapsTest.cpp - tensor maps of host code on a fake driver -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverTest.h"

#include "nm_sparse/Runtime/MGPU.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

namespace {

TEST_F(DriverTest, Im2colMaps) {
  alignas(64) static float data[2 * 6 * 5 * 8];
  auto address = reinterpret_cast<int64_t>(data);
  int64_t descriptor[] = {address, address, 0, 2, 6, 5, 8, 240, 40, 8, 1};
  int64_t box[] = {64, 8}, corner[] = {-1, -2}, upper[] = {-1, -2},
          strides[] = {1, 2};
  auto encode = [&](int64_t rank) {
    return mgpuTensorMapEncodeIm2colMemref(rank, descriptor, 7, 0, 1, 0, 0, box,
                                           corner, upper, strides);
  };
  void *a = encode(4);
  EXPECT_EQ(raised, "");
  EXPECT_NE(a, nullptr);
  EXPECT_EQ(fake().boxInner, 8u);
  EXPECT_EQ(fake().boxOuter, 64u);
  EXPECT_EQ(fake().strideBytes, 32u);
  EXPECT_EQ(encode(4), a);
  auto refuses = [&](const char *reason) {
    EXPECT_EQ(encode(4), nullptr);
    EXPECT_NE(raised.find(reason), std::string::npos) << raised;
    raised.clear();
  };
  corner[0] = -129;
  refuses("lower corner of a tensor map in mode im2col is -129, must be -128");
  corner[0] = -1;
  strides[0] = 9;
  refuses("stride of a tensor map in mode im2col is 9, must be 1 to 8");
  strides[0] = 1;
  box[0] = 1025;
  refuses("number of pixels of a tensor map in mode im2col is 1025");
  box[0] = 64;
  upper[1] = -7;
  refuses("its size is smaller than the window");
  upper[1] = -2;
  int64_t plane[] = {address, address, 0, 6, 5, 8, 40, 8, 1};
  std::copy(std::begin(plane), std::end(plane), descriptor);
  EXPECT_EQ(encode(3), nullptr);
  EXPECT_NE(raised.find("is of rank 3, must be 4"), std::string::npos);
  raised.clear();
}

TEST_F(DriverTest, TensorMaps) {
  alignas(64) static float data[64 * 128];
  // allocated, aligned, offset, sizes, strides
  int64_t descriptor[] = {reinterpret_cast<int64_t>(data),
                          reinterpret_cast<int64_t>(data),
                          0,
                          64,
                          128,
                          128,
                          1};
  int64_t box[] = {16, 32};
  void *a = mgpuTensorMapEncodeTiledMemref(2, descriptor, 7, 0, 3, 0, 0, box);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(fake().boxInner, 32u);
  EXPECT_EQ(fake().boxOuter, 16u);
  EXPECT_EQ(fake().strideBytes, 512u);
  EXPECT_EQ(mgpuTensorMapEncodeTiledMemref(2, descriptor, 7, 0, 3, 0, 0, box),
            a);
  descriptor[2] = 1;
  EXPECT_EQ(mgpuTensorMapEncodeTiledMemref(2, descriptor, 7, 0, 3, 0, 0, box),
            nullptr);
  EXPECT_NE(raised.find("no multiple of 16 bytes"), std::string::npos);
  raised.clear();
  descriptor[3] = 0;
  EXPECT_EQ(mgpuTensorMapEncodeTiledMemref(2, descriptor, 7, 0, 3, 0, 0, box),
            nullptr);
  EXPECT_EQ(raised, "");
}

} // namespace
