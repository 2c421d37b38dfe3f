//===- ProgramMapsTest.cpp - Tensor maps and workspaces of calls ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramFixture.h"

#include <set>

using namespace nms::test;

namespace {

const char *const kMapLaunch =
    R"({"kernel": "k", "grid": ["1", "1", "1"],
    "block": ["128", "1", "1"], "dynamic_shared_memory": "0", "parameters": [
    {"type": "ptr", "source": "arg1", "field": "tensor_map", "box": [4, 32],
     "swizzle": "swizzle_64b", "l2_promotion": "l2promo_128b"}]})";

/// Kernels that add up nothing are launched on what is empty.
TEST_F(ProgramTest, EmptyArraysHaveNoTensorMap) {
  load(makeManifest("64", kMapLaunch));
  auto arrays = makeArrays(0);
  int maps = fake().tensorMaps, launches = fake().launches;
  ASSERT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 1024,
                             nullptr),
            0)
      << nmsLastError();
  EXPECT_EQ(fake().tensorMaps, maps);
  EXPECT_EQ(fake().launches, launches + 1);
  EXPECT_EQ(fake().firstParam, 0u);
}

TEST_F(ProgramTest, TensorMapsAreOfTheWholeArray) {
  load(makeManifest("64", kMapLaunch));
  auto arrays = makeArrays(5, 72);
  int before = fake().tensorMaps, copies = fake().copiesWithoutStream;
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2,
                               memory + 1024, nullptr),
              0)
        << nmsLastError();
  EXPECT_EQ(fake().tensorMaps, before + 1);
  EXPECT_EQ(fake().boxInner, 32u);
  EXPECT_EQ(fake().boxOuter, 4u);
  EXPECT_EQ(fake().strideBytes, 144u);
  // Such a copy would wait for the kernels ahead.
  EXPECT_EQ(fake().copiesWithoutStream, copies);
}

/// One map for each address, also of more addresses than are kept.
TEST_F(ProgramTest, TensorMapsAreOfTheAddress) {
  load(makeManifest("64", kMapLaunch));
  auto arrays = makeArrays(5, 72);
  char *first = static_cast<char *>(arrays[1].data);
  auto launch = [&](int address) {
    arrays[1].data = first + 16 * address;
    EXPECT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2,
                               memory + 1024, nullptr),
              0)
        << nmsLastError();
    return fake().firstParam;
  };
  std::vector<uint64_t> maps(40);
  for (int address = 0; address < 40; ++address)
    maps[address] = launch(address);
  for (int address = 0; address < 40; ++address) {
    EXPECT_EQ(launch(address), maps[address]);
    EXPECT_EQ(launch(address), maps[address]);
  }
  EXPECT_EQ(std::set<uint64_t>(maps.begin(), maps.end()).size(), 40u);
}

/// Workspace and launch at once, with memory of the caller.
TEST_F(ProgramTest, CallsAskForTheirWorkspace) {
  load(makeManifest("64", kMapLaunch));
  auto arrays = makeArrays(5);
  struct Memory {
    void *base;
    std::vector<int64_t> asked;
  } known = {memory + 1024, {}};
  auto allocate = [](void *context, int64_t bytes) -> void * {
    auto *own = static_cast<Memory *>(context);
    own->asked.push_back(bytes);
    return own->base;
  };
  int64_t bytes = nmsProgramWorkspace(program.get(), 0, arrays.data(), 2);
  int launches = fake().launches;
  EXPECT_EQ(nmsProgramCall(program.get(), 0, arrays.data(), 2, allocate, &known,
                           nullptr),
            0)
      << nmsLastError();
  EXPECT_EQ(known.asked, std::vector<int64_t>{bytes});
  EXPECT_EQ(fake().launches, launches + 1);

  known.base = nullptr;
  EXPECT_EQ(nmsProgramCall(program.get(), 0, arrays.data(), 2, allocate, &known,
                           nullptr),
            NMS_CALL_WITHOUT_MEMORY);
  EXPECT_EQ(nmsProgramCall(program.get(), 0, arrays.data(), 1, allocate, &known,
                           nullptr),
            NMS_CALL_REFUSED);
  EXPECT_EQ(known.asked.size(), 2u);
  EXPECT_EQ(fake().launches, launches + 1);
}

} // namespace
