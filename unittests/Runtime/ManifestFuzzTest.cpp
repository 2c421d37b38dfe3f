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

/// A launch as of `--arguments bound`.
const char *const kBoundLaunch =
    R"({"kernel": "k", "grid": ["arg0.size[0]", "1", "1"],
    "block": ["128", "1", "1"], "dynamic_shared_memory": "1024", "parameters": [
    {"type": "ptr", "source": "arg1", "field": "aligned", "access": "read",
     "alignment": 16},
    {"type": "ptr", "source": "buffer0", "field": "aligned",
     "access": "read_write", "alignment": 256},
    {"type": "tensor_map", "source": "arg1", "field": "tensor_map",
     "access": "read", "alignment": 16, "box": [4, 32],
     "swizzle": "swizzle_64b", "l2_promotion": "l2promo_128b", "offset": "8",
     "sizes": ["arg0.size[0]", "64"], "strides": ["arg1.stride[0]", "1"]},
    {"type": "i32", "source": "arg0.size[0]", "field": "value"}]})";

/// A manifest with all fields that a bound program has.
std::string makeBoundManifest() {
  std::string text =
      makeManifest("arg0.size[0] * 2", kBoundLaunch, R"(, "initial": "0")");
  auto replace = [&](const std::string &old, const std::string &by) {
    text.replace(text.find(old), old.size(), by);
  };
  replace(R"("manifest_version": 2)",
          R"("manifest_version": 5, "kernels": [{"name": "k", "waits": true},
          {"name": "l", "waits": false}])");
  replace(R"("role": "data", "type")", R"("role": "values", "label": "w",
          "component": "values", "weight": 0, "type")");
  replace(R"("weights": [])",
          R"("weights": [{"number": 0, "encoding": "2:4", "shape": [64, 64],
          "element_type": "f16", "packed_layout": 1, "components": [
          {"name": "values", "role": "values", "argument": "arg0"}]}])");
  return text;
}

class ManifestFuzzTest : public ProgramTest {
protected:
  void run(const std::string &whole, unsigned seed);
  /// Expects that `text` with `by` in the place of `old` is refused with
  /// `message`.
  void refuse(std::string text, const std::string &old, const std::string &by,
              const char *message);
};

void ManifestFuzzTest::refuse(std::string text, const std::string &old,
                              const std::string &by, const char *message) {
  text.replace(text.find(old), old.size(), by);
  load(text);
  EXPECT_FALSE(program) << by;
  EXPECT_NE(std::string(nmsLastError()).find(message), std::string::npos)
      << nmsLastError();
}

void ManifestFuzzTest::run(const std::string &whole, unsigned seed) {
  std::mt19937 random(seed); // NOLINT(bugprone-random-generator-seed)
  load(whole);
  ASSERT_TRUE(program) << nmsLastError();
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

TEST_F(ManifestFuzzTest, AnyTextIsReadOrRefusedWithASentence) {
  run(makeManifest("arg0.size[0] * 2", kLaunch), 46);
}

TEST_F(ManifestFuzzTest, AnyTextOfBoundKernelsIs) {
  run(makeBoundManifest(), 47);
}

TEST_F(ManifestFuzzTest, FieldsOfBoundKernelsAreChecked) {
  auto expect = [&](const std::string &old, const std::string &by,
                    const char *message) {
    refuse(makeBoundManifest(), old, by, message);
  };
  expect("read_write", "reads", "legal are none, read, write and read_write");
  expect(R"("access": "read")", R"("access": 1)", "'access' is missing");
  for (const char *bytes : {"0", "24", "18446744073709551615"})
    expect(R"("alignment": 16)", R"("alignment": )" + std::string(bytes),
           "is no power of 2 up to");
  expect(R"("alignment": 16)", R"("alignment": -16)", "'alignment' is missing");
  expect(R"("waits": true)", R"("waits": 1)", "'waits' is missing");
  expect(R"("label": "w")", R"("label": 1)", "'label' is missing");
  expect(R"("weight": 0)", R"("weight": 18446744073709551615)",
         "18446744073709551615 is too large");
  expect(R"("number": 0)", R"("number": 18446744073709551615)",
         "18446744073709551615 is too large");
  expect("[64, 64]", "[64, -64]", "is not a list of sizes");
  expect("[64, 64]", "[64, 0.5]", "is not a list of sizes");
  expect(R"("field": "tensor_map")", R"("field": "aligned")",
         "a tensor_map has the field 'aligned', legal is 'tensor_map'");
  expect("swizzle_64b", "swizzle_96b", "swizzle 'swizzle_96b'");
}

/// A map of images of an array of four sizes.
std::string makeIm2colManifest() {
  std::string text = makeBoundManifest();
  auto replace = [&](const std::string &old, const std::string &by) {
    text.replace(text.find(old), old.size(), by);
  };
  replace(R"("manifest_version": 5)", R"("manifest_version": 6)");
  replace(
      R"("sizes": ["arg0.size[0]", "64"], "strides": ["arg1.stride[0]", "1"])",
      R"("sizes": ["2", "4", "4", "64"],
             "strides": ["1024", "256", "64", "1"],
             "im2col": {"lower": [-1, -1], "upper": [-1, 0],
                        "strides": [1, 2]})");
  return text;
}

TEST_F(ManifestFuzzTest, AnyTextOfImagesIs) { run(makeIm2colManifest(), 5); }

TEST_F(ManifestFuzzTest, FieldsOfImagesAreChecked) {
  load(makeIm2colManifest());
  EXPECT_TRUE(program) << nmsLastError();
  auto expect = [&](const std::string &old, const std::string &by,
                    const char *message) {
    refuse(makeIm2colManifest(), old, by, message);
  };
  expect("[-1, -1]", "[-129, -1]", "legal are two numbers, for h and w");
  expect("[-1, 0]", "[-1]", "legal are two numbers, for h and w");
  expect("[1, 2]", "[1, 9]", "from 1 to 8");
  expect("[1, 2]", "[1, 18446744073709551615]", "from 1 to 8");
  expect(R"("box": [4, 32])", R"("box": [4, 1, 32])",
         "legal are two: pixels and channels");
}

} // namespace
