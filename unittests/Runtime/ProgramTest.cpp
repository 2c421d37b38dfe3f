//===- ProgramTest.cpp - Manifests read and launched on a fake driver -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramFixture.h"

#include "nm_sparse/Runtime/Driver.h"

#include <cstring>
#include <random>
#include <vector>

using namespace nms::test;

namespace {

TEST_F(ProgramTest, ExpressionsAreOfSizes) {
  // 64 floats are the 256 bytes that buffers are a multiple of.
  EXPECT_EQ(countBytes("64"), 256);
  EXPECT_EQ(countBytes("(arg0.size[0] * 64)"), 5 * 256);
  EXPECT_EQ(countBytes("(arg0.size[0] + 3) * arg0.stride[0]"), 8 * 256);
  EXPECT_EQ(countBytes("ceildiv(arg0.size[0], 2) * 64"), 3 * 256);
  EXPECT_EQ(countBytes("floordiv(arg0.size[0], 2) * 64"), 2 * 256);
  EXPECT_EQ(countBytes("mod(arg0.size[0], 3) * 64"), 2 * 256);
  EXPECT_EQ(countBytes("max(64, min(128, 192, 256), 65)"), 2 * 256);
  EXPECT_EQ(countBytes("sub(mul(64, 4), add(64, arg0.offset))"), 3 * 256);
  EXPECT_EQ(countBytes("0"), 0);
  EXPECT_EQ(countBytes("1"), 256);
}

TEST_F(ProgramTest, WrongExpressionsSayWhere) {
  auto expect = [&](const char *text, const char *message) {
    EXPECT_LT(countBytes(text), 0) << text;
    EXPECT_NE(std::string(nmsLastError()).find(message), std::string::npos)
        << text << ": " << nmsLastError();
  };
  expect("", "a value was expected at position 0");
  expect("1 +", "a value was expected at position 3");
  expect("1 2", "an operator was expected at position 2");
  expect("(1", "')' was expected");
  expect("half(2, 1)", "a function that is known");
  expect("ceildiv(2)", "two operands");
  expect("mod(4, 3, 2)", "two operands");
  expect("arg0.rank", "size, stride or offset");
  expect("arg0.size[0", "the number of a dimension");
  expect("99999999999999999999", "a number of 64 bits");
  expect(std::string(5000, '(').c_str(), "less nesting");
  expect("arg7.size[0]", "'arg7' is no argument or buffer of @f");
  expect("arg0.size[2]", "has no such dimension");
  expect("arg0", "is no number");
  expect("ceildiv(1, sub(arg0.size[0], 5))", "a division by 0");
  expect("9223372036854775807 + arg0.size[0]", "a sum is too large");
  expect("sub(0, arg0.size[0])", "has the sizes [-5]");
  expect("4611686018427387904", "has the sizes [4611686018427387904]");
}

/// Whatever bytes come, the answer is a program or a sentence.
TEST_F(ProgramTest, DamagedManifestsAreErrors) {
  std::string whole = makeManifest("64", kLaunch);
  // The same in each run. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (int edits = 1 + int(random() % 4); edits > 0 && !text.empty();
         --edits) {
      size_t at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text[at] = char(32 + random() % 95);
        break;
      case 1:
        text.erase(at, 1 + random() % 20);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 20));
        break;
      default:
        text.resize(at + 1);
      }
    }
    nmsClearError();
    load(text);
    refused += !program;
    if (!program) {
      EXPECT_STRNE(nmsLastError(), "") << text;
      continue;
    }
    auto arrays = makeArrays(5);
    (void)nmsProgramWorkspace(program.get(), 0, arrays.data(), 2);
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(ProgramTest, ManifestsThatAreNoneSayWhy) {
  auto expect = [&](const std::string &text, const char *message) {
    load(text);
    EXPECT_FALSE(program);
    EXPECT_NE(std::string(nmsLastError()).find(message), std::string::npos)
        << nmsLastError();
  };
  expect("{", "the manifest is not JSON");
  expect("{}", "'manifest_version' is missing");
  expect(R"({"manifest_version": 9, "functions": []})",
         "manifest_version is 9, legal are 2 to 6");
  expect(R"({"manifest_version": 2, "functions": []})", "it has no functions");
  std::string wrong = makeManifest("1");
  wrong.replace(wrong.find("memref<?x64xf16>"), 16, "memref<?x64qf16>");
  expect(wrong, "is no type of a manifest");
  wrong = makeManifest("1");
  const std::string views[] = {R"(["2", )", R"(["buffer0.stride[0]", )"};
  for (const std::string &begin : views)
    for (int i = 0; i < 7; ++i)
      wrong.insert(wrong.find(begin) + begin.size(), R"("1", )");
  expect(wrong, "a view has 9 sizes, at most 8 are legal");
  load(makeManifest("1"), "");
  EXPECT_STREQ(nmsLastError(),
               "nmsProgramCreate: the manifest or the image is empty");
}

TEST_F(ProgramTest, LaunchesWithPointersAndStrides) {
  load(makeManifest("64", kLaunch));
  ASSERT_TRUE(program) << nmsLastError();
  auto arrays = makeArrays(5, 72);
  int before = fake().launches;
  ASSERT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 1024,
                             nullptr),
            0)
      << nmsLastError();
  EXPECT_EQ(fake().launches, before + 1);
  EXPECT_EQ(fake().grid[0], 5u);
  EXPECT_EQ(fake().grid[1], 2u);
  EXPECT_EQ(fake().firstParam, reinterpret_cast<uint64_t>(memory + 256));
}

/// A kernel reads 4 bytes of a number, so what does not fit is refused.
TEST_F(ProgramTest, NumbersOf32BitsFit) {
  auto call = [&](const std::string &number, int64_t rows) {
    std::string launch = kLaunch;
    const std::string old =
        R"({"type": "i64", "source": "arg0", "field": "stride[0]"})";
    launch.replace(launch.find(old), old.size(),
                   R"({"type": "i32", "source": ")" + number +
                       R"(", "field": "value"})");
    load(makeManifest("64", launch));
    auto arrays = makeArrays(rows);
    return nmsProgramWorkspace(program.get(), 0, arrays.data(), 2);
  };
  EXPECT_EQ(call("arg0.size[0]", INT32_MAX), 256) << nmsLastError();
  EXPECT_EQ(call("arg0.size[0]", int64_t(INT32_MAX) + 1), -1);
  EXPECT_NE(std::string(nmsLastError())
                .find("takes arg0.size[0] as 32 bits, and it is 2147483648: "
                      "legal are 0 to 2147483647"),
            std::string::npos)
      << nmsLastError();
  EXPECT_EQ(call("sub(arg0.size[0], 6)", 5), -1);
  EXPECT_EQ(call("sub(arg0.size[0], 5)", 5), 256) << nmsLastError();
}

TEST_F(ProgramTest, ModulesAreLoadedOnceAndGivenBack) {
  int loads = fake().moduleLoads;
  for (int i = 0; i < 2; ++i) {
    load(makeManifest("64", kLaunch), "// of programs");
    auto arrays = makeArrays(5);
    for (int call = 0; call < 2; ++call)
      ASSERT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2,
                                 memory + 1024, nullptr),
                0);
  }
  EXPECT_EQ(fake().moduleLoads, loads + 1);
  // Also where the first call is captured in a graph, whose mode then goes on.
  EXPECT_EQ(fake().loadedInMode, 2);
  EXPECT_EQ(fake().captureMode, 0);
  program.reset();
  int unloads = fake().moduleUnloads;
  EXPECT_EQ(nmsModuleCacheClear(), 0);
  EXPECT_GT(fake().moduleUnloads, unloads);
}

TEST_F(ProgramTest, AnEmptyGridLaunchesNothing) {
  load(makeManifest("64", kLaunch));
  auto arrays = makeArrays(0);
  int before = fake().launches;
  EXPECT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 1024,
                             nullptr),
            0);
  EXPECT_EQ(fake().launches, before);
}

TEST_F(ProgramTest, BuffersBeginWithTheirValue) {
  load(makeManifest("64", kLaunch, R"(, "initial": "0")"));
  auto arrays = makeArrays(5);
  int before = fake().memsets;
  EXPECT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 1024,
                             nullptr),
            0);
  EXPECT_EQ(fake().memsets, before + 1);
}

TEST_F(ProgramTest, BuffersBeginAtNoValueThatDoesNotFit) {
  std::string text = makeManifest("64", kLaunch, R"(, "initial": "3")");
  auto call = [&](const char *type) {
    std::string other = text;
    other.replace(other.find("memref<?xf32>"), 13, type);
    load(other);
    auto arrays = makeArrays(5);
    return nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 1024,
                            nullptr);
  };
  EXPECT_EQ(call("memref<?xi32>"), 0) << nmsLastError();
  EXPECT_EQ(memory[1024 + 4 * 63], 3);
  EXPECT_EQ(call("memref<?xi16>"), 0) << nmsLastError();
  EXPECT_EQ(memory[1024 + 2 * 63], 3);
  for (const char *type : {"memref<?xi8>", "memref<?xi64>"}) {
    int before = fake().memsets;
    EXPECT_EQ(call(type), 1);
    EXPECT_EQ(fake().memsets, before);
    EXPECT_NE(
        std::string(nmsLastError()).find("cannot begin as 3: legal is 0 or -1"),
        std::string::npos)
        << nmsLastError();
  }
}

TEST_F(ProgramTest, ResultsLieInArgumentsOrTheWorkspace) {
  load(makeManifest("arg0.size[0] * 64"));
  ASSERT_EQ(nmsProgramResults(program.get(), 0), 2);
  auto arrays = makeArrays(5, 72);
  NmsResult result;
  ASSERT_EQ(nmsProgramResult(program.get(), 0, arrays.data(), 2, 0, &result),
            0);
  EXPECT_EQ(result.argument, 1);
  EXPECT_EQ(result.kind, NMS_F16);
  EXPECT_EQ(result.sizes[0], 5);
  EXPECT_EQ(result.strides[0], 72);
  ASSERT_EQ(nmsProgramResult(program.get(), 0, arrays.data(), 2, 1, &result),
            0);
  EXPECT_EQ(result.argument, -1);
  EXPECT_EQ(result.offset, 32);
  EXPECT_EQ(result.sizes[1], 5);
  EXPECT_NE(nmsProgramResult(program.get(), 0, arrays.data(), 2, 2, &result),
            0);
  EXPECT_STREQ(nmsLastError(), "@f has 2 results, and number 2 was asked for");
}

TEST_F(ProgramTest, WrongCallsSayWhatIsLegal) {
  load(makeManifest("64", kLaunch));
  auto arrays = makeArrays(5);
  auto expect = [&](const char *message) {
    EXPECT_EQ(nmsProgramWorkspace(program.get(), 0, arrays.data(),
                                  static_cast<int32_t>(arrays.size())),
              -1);
    EXPECT_STREQ(nmsLastError(), message);
  };
  strides[0] = 63;
  arrays[0].strides = strides;
  expect("argument 0 of @f, memref<?x64xf16>, was given an array with the "
         "strides [63, 1]: pass one whose rows follow each other without gaps, "
         "such as a copy");
  arrays = makeArrays(5);
  sizes[1] = 65;
  expect("argument 0 of @f, memref<?x64xf16>, was given an array of the shape "
         "[5, 65]");
  arrays = makeArrays(5);
  arrays[1].rank = -1;
  expect(
      "argument 1 of @f, memref<?x64xf16, strided<[?, 1], offset: ?>>, is an "
      "array, and a number was given");
  arrays = makeArrays(5);
  arrays.pop_back();
  expect("@f takes 2 arguments, got 1");
  arrays = makeArrays(5);
  EXPECT_EQ(
      nmsProgramLaunch(program.get(), 0, arrays.data(), 2, memory + 8, nullptr),
      1);
  EXPECT_NE(std::string(nmsLastError()).find("no multiple of 256"),
            std::string::npos);
  for (char *data : {memory + 8, static_cast<char *>(nullptr)}) {
    arrays[1].data = data;
    EXPECT_EQ(nmsProgramLaunch(program.get(), 0, arrays.data(), 2,
                               memory + 1024, nullptr),
              1);
    EXPECT_NE(std::string(nmsLastError()).find("argument 1 of @f begins at"),
              std::string::npos)
        << nmsLastError();
  }
  EXPECT_EQ(nmsProgramFunction(program.get(), "g"), -1);
  EXPECT_STREQ(nmsLastError(),
               "the program has no function @g; its first is @f");
  EXPECT_EQ(nmsProgramWorkspace(program.get(), 4, arrays.data(), 2), -1);
  EXPECT_STREQ(nmsLastError(), "the program has no function 4, only 0 to 0");
}

TEST_F(ProgramTest, FunctionsSelectOthersByTokens) {
  std::string one = makeManifest("64");
  // The same function twice, with buffers of other sizes, and one that selects.
  size_t begin = one.find("[{\"name\": \"f\"") + 1, end = one.rfind("]}");
  std::string small = one.substr(begin, end - begin), large = small;
  large.replace(large.find("[\"64\"]"), 6, "[\"128\"]");
  small.replace(small.find("\"f\""), 3, "\"small\"");
  large.replace(large.find("\"f\""), 3, "\"large\"");
  std::string arguments =
      small.substr(small.find("\"arguments\""),
                   small.find("\"buffers\"") - small.find("\"arguments\""));
  load(R"({"manifest_version": 3, "functions": [{"name": "f", )" + arguments +
       R"("tokens": "arg0.size[0]", "cases": [{"at_most": 5,
       "function": "small"}, {"function": "large"}]}, )" +
       small + ", " + large + "]}");
  ASSERT_TRUE(program) << nmsLastError();
  auto arrays = makeArrays(5);
  EXPECT_EQ(nmsProgramWorkspace(program.get(), 0, arrays.data(), 2), 256);
  arrays = makeArrays(6);
  EXPECT_EQ(nmsProgramWorkspace(program.get(), 0, arrays.data(), 2), 512);
  EXPECT_EQ(nmsProgramResults(program.get(), 0), 2);
}

} // namespace
