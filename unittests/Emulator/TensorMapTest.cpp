//===- TensorMapTest.cpp - tensor maps that kernels make ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/TensorMap.h"
#include "KernelRunner.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

constexpr unsigned width = 64, height = 16; ///< A tensor of f32.
constexpr unsigned boxWidth = 8, boxHeight = 4;

const char *const zeros = R"(
    %zero = llvm.mlir.constant(dense<0> : vector<32xi32>) : vector<32xi32>
    llvm.store %zero, %map {alignment = 64 : i64} : vector<32xi32>, !llvm.ptr<1>
)";
const char *const release = "nvvm.fence.proxy.release <gpu>\n";
const char *const acquire = R"(
    %mapBytes = llvm.mlir.constant(128 : i32) : i32
    nvvm.fence.proxy.acquire <gpu> %generic, %mapBytes
)";

std::string replace(const std::string &field, const std::string &operands,
                    const std::string &types) {
  return "llvm.call_intrinsic \"llvm.nvvm.tensormap.replace." + field +
         "\"(%map, " + operands + ") : (!llvm.ptr<1>, " + types + ") -> ()\n";
}

/// Sets all fields of the map but the address; the innermost box is %inner.
std::string replaceShape() {
  std::string text = R"(
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %width = llvm.mlir.constant(64 : i32) : i32
    %height = llvm.mlir.constant(16 : i32) : i32
    %outer = llvm.mlir.constant(4 : i32) : i32
    %pitch = llvm.mlir.constant(256 : i64) : i64
)";
  text += replace("rank", "%c1", "i32");
  text += replace("box.dim", "%c0, %inner", "i32, i32");
  text += replace("box.dim", "%c1, %outer", "i32, i32");
  text += replace("global.dim", "%c0, %width", "i32, i32");
  text += replace("global.dim", "%c1, %height", "i32, i32");
  text += replace("global.stride", "%c0, %pitch", "i32, i64");
  text += replace("element.stride", "%c0, %c1", "i32, i32");
  text += replace("element.stride", "%c1, %c1", "i32, i32");
  text += replace("elemtype", "%c7", "i32");
  text += replace("interleave.layout", "%c0", "i32");
  text += replace("swizzle.mode", "%c0", "i32");
  text += replace("fill.mode", "%c0", "i32");
  return text;
}

std::string replaceAddress() {
  return "%address = llvm.ptrtoint %tensor : !llvm.ptr to i64\n" +
         replace("global.address", "%address", "i64");
}

/// A kernel of one thread that changes the map at %map as `body` says.
std::string makeMaker(const std::string &body) {
  return R"(
  llvm.func @make(%generic: !llvm.ptr, %tensor: !llvm.ptr, %inner: i32) attributes {nvvm.kernel} {
    %map = llvm.addrspacecast %generic : !llvm.ptr to !llvm.ptr<1>
)" + body +
         R"(
    llvm.return
  })";
}

/// A kernel of one thread that copies the box at (8, 1) to %out after `before`.
std::string makeLoad(const std::string &before,
                     const std::string &attributes = "") {
  return R"(
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @load(%generic: !llvm.ptr)" +
         attributes +
         R"(, %tensor: !llvm.ptr, %inner: i32, %out: !llvm.ptr) attributes {nvvm.kernel} {
    %map = llvm.addrspacecast %generic : !llvm.ptr to !llvm.ptr<1>
)" + before +
         R"(
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %mbar = llvm.getelementptr %shared[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %target = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
    %none = llvm.mlir.constant(0 : i32) : i32
    %x = llvm.mlir.constant(8 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(128 : i32) : i32
    %ticks = llvm.mlir.constant(10000000 : i32) : i32
    nvvm.mbarrier.init %mbar, %one : !llvm.ptr<3>, i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    %state = nvvm.mbarrier.arrive.expect_tx %mbar, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %generic, %mbar, box[%x, %one] : !llvm.ptr<7>, !llvm.ptr
    nvvm.mbarrier.try_wait.parity %mbar, %none, %ticks : !llvm.ptr<3>, i32, i32
    llvm.br ^copy(%none : i32)
  ^copy(%i: i32):
    %from = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %value = llvm.load %from : !llvm.ptr<3> -> f32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %value, %to : f32, !llvm.ptr
    %next = llvm.add %i, %one : i32
    %end = llvm.mlir.constant(32 : i32) : i32
    %more = llvm.icmp "ult" %next, %end : i32
    llvm.cond_br %more, ^copy(%next : i32), ^done
  ^done:
    llvm.return
  })";
}

TensorMap encodeMap(const float *tensor) {
  TensorMap map = {};
  map.base = reinterpret_cast<uint64_t>(tensor);
  map.sizes[0] = width;
  map.sizes[1] = height;
  map.strideBytes[0] = width * sizeof(float);
  map.box[0] = boxWidth;
  map.box[1] = boxHeight;
  map.elementStrides[0] = map.elementStrides[1] = 1;
  map.rank = 2;
  map.magic = TensorMap::expectedMagic;
  map.setType(TensorMapType::Float32);
  return map;
}

class TensorMapTest : public ::testing::Test {
protected:
  void start(const std::string &kernels) {
    runner = std::make_unique<KernelRunner>(kernels);
    std::vector<float> numbers(width * height);
    for (unsigned i = 0; i < numbers.size(); ++i)
      numbers[i] = float(i);
    tensor = runner->upload<float>(numbers);
    map = runner->allocate<TensorMap>(1);
    out = runner->allocate<float>(boxWidth * boxHeight);
  }
  std::string make(int inner = boxWidth) {
    return runner->run("make", makeShape(1), map, tensor, inner);
  }
  std::string load(const void *from) {
    return runner->run("load", makeShape(1, 256), from, tensor, int(boxWidth),
                       out);
  }
  void expectBox() {
    for (unsigned y = 0; y < boxHeight; ++y)
      for (unsigned x = 0; x < boxWidth; ++x)
        EXPECT_EQ(out[y * boxWidth + x], (y + 1) * width + x + 8);
  }
  static void expect(const std::string &fault, const std::string &text) {
    EXPECT_NE(fault.find(text), std::string::npos) << fault;
  }

  std::unique_ptr<KernelRunner> runner;
  float *tensor = nullptr, *out = nullptr;
  TensorMap *map = nullptr;
};

TEST_F(TensorMapTest, IsMadeOfZeros) {
  start(makeMaker(zeros + replaceShape() + replaceAddress() + release) +
        makeLoad(acquire));
  ASSERT_EQ(make(), "");
  ASSERT_EQ(load(map), "");
  expectBox();
  EXPECT_EQ(map->missing & 1, 0u);
  EXPECT_EQ(map->type, TensorMapType::Float32);
}

TEST_F(TensorMapTest, IsChangedAfterTheDriverEncodedIt) {
  start(makeMaker(replaceAddress() + release) + makeLoad(acquire));
  TensorMap wrong = encodeMap(tensor);
  wrong.base = 64;
  map = runner->upload<TensorMap>(wrong);
  ASSERT_EQ(make(), "");
  ASSERT_EQ(load(map), "");
  expectBox();
}

TEST_F(TensorMapTest, IsMadeByTheKernelThatUsesIt) {
  start(
      makeLoad(zeros + replaceShape() + replaceAddress() + release + acquire));
  ASSERT_EQ(load(map), "");
  expectBox();
}

TEST_F(TensorMapTest, IsReleasedAndAcquiredByIntrinsics) {
  const std::string fence =
      "llvm.call_intrinsic \"llvm.nvvm.fence.proxy.tensormap_generic.";
  const std::string acquireCall =
      fence + R"(acquire.gpu"(%generic, %mapBytes) : (!llvm.ptr, i32) -> ()
)";
  start(makeMaker(zeros + replaceShape() + replaceAddress() + fence +
                  "release.gpu\"() : () -> ()\n") +
        makeLoad("%mapBytes = llvm.mlir.constant(128 : i32) : i32\n" +
                 acquireCall));
  ASSERT_EQ(make(), "");
  ASSERT_EQ(load(map), "");
  expectBox();
  KernelRunner wrong(
      makeLoad("%mapBytes = llvm.mlir.constant(64 : i32) : i32\n" +
               acquireCall),
      /*wantError=*/true);
  expect(wrong.error, "must acquire 128 bytes, as a constant");
}

TEST_F(TensorMapTest, NeedsAnAcquire) {
  start(makeMaker(zeros + replaceShape() + replaceAddress() + release) +
        makeLoad(""));
  ASSERT_EQ(make(), "");
  expect(load(map), "no fence.proxy.acquire of this CTA comes before");
}

TEST_F(TensorMapTest, NeedsAnAcquireAfterEachChange) {
  start(makeLoad(zeros + replaceShape() + replaceAddress() + release + acquire +
                 replace("rank", "%c1", "i32") +
                 "nvvm.fence.proxy.release <gpu>\n"));
  expect(load(map), "was written again after its fence.proxy.acquire");
}

TEST_F(TensorMapTest, NeedsARelease) {
  start(makeMaker(zeros + replaceShape() + replaceAddress()) +
        makeLoad(acquire));
  ASSERT_EQ(make(), "");
  expect(load(map), "no fence.proxy.release came after that");
}

TEST_F(TensorMapTest, OfTheHostNeedsNoFence) {
  start(makeLoad(""));
  map = runner->upload<TensorMap>(encodeMap(tensor));
  ASSERT_EQ(load(map), "");
  expectBox();
}

TEST_F(TensorMapTest, IsRefusedWhereNeitherAMapNorZerosAre) {
  start(makeMaker(replaceAddress() + release) + makeLoad(""));
  TensorMap garbage = {};
  garbage.unused[0] = 1;
  map = runner->upload<TensorMap>(garbage);
  expect(make(), "there is neither a tensor map at");
  expect(load(map), "there is no tensor map at");
}

TEST_F(TensorMapTest, IsRefusedWhereNothingWasWritten) {
  start(makeMaker(replaceAddress() + release));
  expect(make(), "reads what nothing wrote");
}

TEST_F(TensorMapTest, NeedsAllFields) {
  start(makeMaker(zeros + replaceShape() + release) + makeLoad(acquire));
  ASSERT_EQ(make(), "");
  expect(load(map), "tensormap.replace has not set its global_address");
}

TEST_F(TensorMapTest, NeedsLegalFields) {
  start(makeMaker(zeros + replaceShape() + replaceAddress() + release) +
        makeLoad(acquire));
  ASSERT_EQ(make(300), "");
  expect(load(map), "box 0 is 300, not 1 to 256");
  ASSERT_EQ(make(2), "");
  expect(load(map), "the innermost box is 8 bytes, not a multiple of 16");
}

TEST_F(TensorMapTest, IsChangedInSharedMemory) {
  // The shared copy is changed, and stored behind the map of the host.
  start(makeLoad(R"(
    %buffer = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %words = llvm.load %map {alignment = 64 : i64} : !llvm.ptr<1> -> vector<32xi32>
    llvm.store %words, %buffer {alignment = 64 : i64} : vector<32xi32>, !llvm.ptr<3>
    %address = llvm.ptrtoint %tensor : !llvm.ptr to i64
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.global.address"(%buffer, %address) : (!llvm.ptr<3>, i64) -> ()
    %changed = llvm.load %buffer {alignment = 64 : i64} : !llvm.ptr<3> -> vector<32xi32>
    llvm.store %changed, %map {alignment = 64 : i64} : vector<32xi32>, !llvm.ptr<1>
)" + std::string(release) +
                 acquire));
  TensorMap wrong = encodeMap(tensor);
  wrong.base = 64;
  map = runner->upload<TensorMap>(wrong);
  ASSERT_EQ(load(map), "");
  expectBox();
}

const char *byValue =
    " {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, "
    "nvvm.grid_constant}";

TEST_F(TensorMapTest, IsPassedByValue) {
  start(makeLoad("", byValue));
  TensorMap parameter = encodeMap(tensor);
  const Kernel &kernel = *runner->module->lookup("load");
  EXPECT_EQ(kernel.getArgumentBytes()[0], sizeof(TensorMap));
  EXPECT_EQ(kernel.getArgumentAlignments()[0], 64u);
  int inner = boxWidth;
  void *arguments[] = {&parameter, static_cast<void *>(&tensor), &inner,
                       static_cast<void *>(&out)};
  ASSERT_EQ(
      launch(kernel, makeShape(1, 256), arguments, runner->memory, "sm_90a", 1),
      "");
  expectBox();
}

TEST_F(TensorMapTest, IsNotChangedWhereItIsPassedByValue) {
  start(makeLoad(replaceAddress(), byValue));
  TensorMap parameter = encodeMap(tensor);
  int inner = boxWidth;
  void *arguments[] = {&parameter, static_cast<void *>(&tensor), &inner,
                       static_cast<void *>(&out)};
  expect(launch(*runner->module->lookup("load"), makeShape(1, 256), arguments,
                runner->memory, "sm_90a", 1),
         "is in a parameter that is passed by value");
}

TEST(TensorMap, RefusesUnknownValues) {
  auto expectError = [](const std::string &body, const std::string &text) {
    KernelRunner runner(makeMaker(body), /*wantError=*/true);
    EXPECT_NE(runner.error.find(text), std::string::npos) << runner.error;
  };
  const std::string five = "%c5 = llvm.mlir.constant(5 : i32) : i32\n";
  expectError(five + replace("swizzle.mode", "%c5", "i32"),
              "has value 5; emulated are 0 to 3");
  expectError(five + replace("box.dim", "%c5, %inner", "i32, i32"),
              "has ordinal 5; emulated are 0 to 4");
  expectError(replace("fill.mode", "%inner", "i32"),
              "wants its value as a constant");
}

} // namespace
