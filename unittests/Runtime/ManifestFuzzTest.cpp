//===- ManifestFuzzTest.cpp - Manifests that nobody wrote -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A manifest comes from a file. Whatever its text is, it is refused with a
// sentence, or its sizes are computed or refused with one.
//
//===----------------------------------------------------------------------===//

#include "ProgramFixture.h"

#include <random>

using namespace nms::test;

namespace {

/// Pieces of manifests, and of texts that are none.
const char *const kPieces[] = {"1e308",
                               "null",
                               "true",
                               "[]",
                               "{}",
                               "\"\"",
                               "\"arg0.size[0]\"",
                               "(",
                               ")",
                               " floordiv 0",
                               " * arg1.stride[9]",
                               "buffer0",
                               "arg7.size[0]",
                               "memref<",
                               "memref<?x64xf16>",
                               "[[[[[[[[",
                               "\\ud800",
                               "\xff",
                               "\""};

/// Ordinary numbers, and those at the limits of 32 and 64 bits.
const char *const kNumbers[] = {"0",
                                "1",
                                "2",
                                "7",
                                "65",
                                "-1",
                                "2147483648",
                                "9223372036854775807",
                                "18446744073709551616"};

/// Replaces a few characters, strings or numbers of `text`.
std::string mutate(std::string text, std::mt19937 &random) {
  auto draw = [&](size_t end) { return random() % end; };
  for (size_t edits = 1 + draw(2); edits > 0 && !text.empty(); --edits) {
    size_t begin = draw(text.size());
    size_t length = std::min(text.size() - begin, size_t(1) + draw(12));
    switch (draw(10)) {
    case 0:
      text.erase(begin, length);
      break;
    case 1:
      text.insert(begin, text.substr(draw(text.size()), length));
      break;
    case 2:
      text[begin] = static_cast<char>(random());
      break;
    case 3:
      text.insert(begin, kPieces[draw(std::size(kPieces))]);
      break;
    case 4: { // the next string
      size_t from = text.find('"', begin);
      size_t to = text.find('"', std::min(from, text.size() - 1) + 1);
      if (to != std::string::npos)
        text.replace(from, to - from + 1, kPieces[draw(std::size(kPieces))]);
      break;
    }
    default: { // the next integer, most of which are parts of expressions
      size_t from = text.find_first_of("0123456789", begin);
      if (from == std::string::npos)
        break;
      size_t to = text.find_first_not_of("0123456789", from);
      text.replace(from, to - from, kNumbers[draw(std::size(kNumbers))]);
    }
    }
  }
  if (draw(20) == 0)
    text.resize(draw(text.size() + 1));
  return text;
}

TEST_F(ProgramTest, AnyTextIsReadOrRefusedWithASentence) {
  std::mt19937 random(46); // NOLINT(bugprone-random-generator-seed)
  const std::string whole = makeManifest("arg0.size[0] * 2", kLaunch);
  int read = 0, refused = 0, sized = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = mutate(whole, random);
    SCOPED_TRACE(text);
    load(text);
    if (!program) {
      ++refused;
      ASSERT_STRNE(nmsLastError(), "");
      continue;
    }
    ++read;
    auto arrays = makeArrays(5);
    for (int32_t f = 0; nmsProgramArguments(program.get(), f) >= 0; ++f) {
      int32_t count = std::min(nmsProgramArguments(program.get(), f), 2);
      int64_t bytes =
          nmsProgramWorkspace(program.get(), f, arrays.data(), count);
      if (bytes >= 0)
        ++sized;
      else
        ASSERT_STRNE(nmsLastError(), "");
      for (int32_t r = 0; r < nmsProgramResults(program.get(), f); ++r) {
        NmsResult result;
        if (nmsProgramResult(program.get(), f, arrays.data(), count, r,
                             &result))
          ASSERT_STRNE(nmsLastError(), "");
      }
    }
  }
  // Some texts must be refused, and some read.
  EXPECT_GT(refused, 400);
  EXPECT_GT(read, 400);
  EXPECT_GT(sized, 100);
}

} // namespace
