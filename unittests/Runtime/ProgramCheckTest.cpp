//===- ProgramCheckTest.cpp - What programs check after their launches ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverTest.h"

#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Runtime/Program.h"

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

const char *const kChecks = R"([
  {"buffer": "buffer0", "kind": "packed", "n": 2, "m": 4, "batch": 1,
   "windows": 3, "panels": 5},
  {"buffer": "buffer1", "kind": "packed", "n": 8, "m": 32, "batch": 7,
   "windows": 11, "panels": 13}])";

/// One argument, two words and a launch that takes the second word.
std::string makeManifest(const std::string &checks = kChecks) {
  std::string word = R"("type": "memref<1xi64>", "sizes": ["1"],
      "initial": "-1"})";
  return R"({"manifest_version": 4, "functions": [{"name": "f", "arguments": [
      {"name": "arg0", "role": "data", "type": "memref<?x64xf16>"}],
      "weights": [], "buffers": [{"name": "buffer0", )" +
         word + R"(, {"name": "buffer1", )" + word +
         R"(], "launches": [{"kernel": "k", "grid": ["1", "1", "1"],
      "block": ["128", "1", "1"], "dynamic_shared_memory": "0", "parameters": [
      {"type": "ptr", "source": "buffer1", "field": "aligned"}]}],
      "results": [], "checks": )" +
         checks + "}]}";
}

/// The word that a kernel leaves for a window with `count` blocks.
int64_t encodeFound(int64_t place, int64_t count) {
  return place << NMS_PACKED_COUNT_BITS | count;
}

class ProgramCheckTest : public DriverTest {
protected:
  void load(const std::string &manifest) {
    program.reset(
        nmsProgramCreate(manifest.data(), manifest.size(), "// ptx", 6));
  }
  int launch() {
    return nmsProgramLaunch(program.get(), 0, &array, 1, memory + 256, nullptr);
  }
  int check() {
    return nmsProgramCheck(program.get(), 0, &array, 1, memory + 256, nullptr);
  }
  void leave(int word, int64_t found) {
    memcpy(memory + 256 * (1 + word), &found, sizeof(found));
  }
  void TearDown() override {
    fake().streamCapture = 0;
    program.reset();
    DriverTest::TearDown();
  }

  struct Destroy {
    void operator()(NmsProgram *p) const { nmsProgramDestroy(p); }
  };
  std::unique_ptr<NmsProgram, Destroy> program;
  alignas(256) char memory[1024] = {};
  int64_t sizes[2] = {1, 64};
  NmsArray array = {memory, 2, sizes, nullptr};
};

TEST_F(ProgramCheckTest, WordsBeginAsNothingFound) {
  load(makeManifest());
  ASSERT_TRUE(program) << nmsLastError();
  EXPECT_EQ(nmsProgramChecks(program.get(), 0), 2);
  EXPECT_EQ(nmsProgramWorkspace(program.get(), 0, &array, 1), 512);
  leave(0, 0);
  leave(1, 0);
  ASSERT_EQ(launch(), 0) << nmsLastError();
  int syncs = fake().syncs;
  EXPECT_EQ(check(), 0) << nmsLastError();
  EXPECT_EQ(fake().syncs, syncs + 1);
}

TEST_F(ProgramCheckTest, WhatKernelsFindIsSaid) {
  load(makeManifest());
  ASSERT_EQ(launch(), 0) << nmsLastError();
  leave(1, encodeFound((6 * 11 + 10) * 13 + 12, 32));
  EXPECT_EQ(check(), NMS_CHECK_FAILED);
  EXPECT_STREQ(nmsLastError(),
               "pack: weight is not 8:32: window 10 of panel 12 of batch 6 has "
               "32 nonzero blocks, legal is at most 8; prune the weight or use "
               "a larger n");
  leave(0, encodeFound(2 * 5 + 4, 3));
  EXPECT_EQ(check(), NMS_CHECK_FAILED);
  EXPECT_STREQ(nmsLastError(),
               "pack: weight is not 2:4: window 2 of panel 4 has 3 nonzero "
               "blocks, legal is at most 2; prune the weight or use a larger "
               "n");
  // The next call begins anew.
  ASSERT_EQ(launch(), 0) << nmsLastError();
  EXPECT_EQ(check(), 0);
}

TEST_F(ProgramCheckTest, CapturedStreamsAreNotWaitedFor) {
  load(makeManifest());
  fake().streamCapture = 1;
  int syncs = fake().syncs;
  ASSERT_EQ(launch(), 0) << nmsLastError();
  EXPECT_EQ(check(), 1);
  EXPECT_EQ(fake().syncs, syncs);
  EXPECT_NE(std::string(nmsLastError()).find("the stream is captured"),
            std::string::npos)
      << nmsLastError();
  fake().streamCapture = 0;
  EXPECT_EQ(check(), 0);
}

TEST_F(ProgramCheckTest, WithoutChecksNothingIsWaitedFor) {
  load(makeManifest("[]"));
  EXPECT_EQ(nmsProgramChecks(program.get(), 0), 0);
  EXPECT_EQ(nmsProgramChecks(program.get(), 3), -1);
  ASSERT_EQ(launch(), 0) << nmsLastError();
  int syncs = fake().syncs;
  EXPECT_EQ(check(), 0);
  EXPECT_EQ(fake().syncs, syncs);
}

TEST_F(ProgramCheckTest, WrongCallsSayWhatIsLegal) {
  load(makeManifest());
  EXPECT_EQ(nmsProgramCheck(program.get(), 0, &array, 1, nullptr, nullptr), 1);
  EXPECT_NE(std::string(nmsLastError()).find("the workspace is null"),
            std::string::npos);
  sizes[1] = 65;
  EXPECT_EQ(check(), 1);
  EXPECT_NE(std::string(nmsLastError()).find("of the shape [1, 65]"),
            std::string::npos);
}

TEST_F(ProgramCheckTest, ChecksThatAreNoneSayWhy) {
  auto expect = [&](const std::string &from, const std::string &to,
                    const char *message) {
    std::string text = makeManifest();
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    load(text.replace(at, from.size(), to));
    EXPECT_FALSE(program && check() != 1);
    EXPECT_NE(std::string(nmsLastError()).find(message), std::string::npos)
        << to << ": " << nmsLastError();
  };
  expect("\"packed\"", "\"index\"", "a check is 'index', legal is 'packed'");
  expect("\"windows\": 3", "\"windows\": 0", "'windows' of 0, legal is at");
  expect("\"windows\": 3", "\"windows\": -1", "'windows' is missing");
  expect("\"panels\": 5", "\"panel\": 5", "'panels' is missing");
  expect("\"buffer\": \"buffer0\"", "\"buffer\": \"arg0\"",
         "'arg0', which is checked, is no buffer of one i64");
  expect("\"initial\": \"-1\"", "\"other\": \"-1\"",
         "'buffer0', which is checked, is no buffer of one i64");
  expect("memref<1xi64>", "memref<1xi32>", "is no buffer of one i64");
  expect("\"sizes\": [\"1\"]", "\"sizes\": [\"0\"]",
         "buffer0 of @f is checked, and is not one word");
}

/// Whatever bytes come, the answer is a program or a sentence.
TEST_F(ProgramCheckTest, DamagedChecksAreErrors) {
  std::string whole = makeManifest();
  size_t begin = whole.find("\"checks\"");
  // The same in each run. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int edits = 1 + int(random() % 3); edits > 0; --edits) {
      size_t at = begin + random() % (text.size() - begin);
      if (random() % 2)
        text[at] = char(32 + random() % 95);
      else
        text.erase(at, 1 + random() % 12);
      text += text.size() == begin ? " " : "";
    }
    nmsClearError();
    load(text);
    refused += !program;
    if (program)
      (void)nmsProgramWorkspace(program.get(), 0, &array, 1);
    else
      EXPECT_STRNE(nmsLastError(), "") << text;
  }
  EXPECT_GT(refused, 1000);
}

} // namespace
