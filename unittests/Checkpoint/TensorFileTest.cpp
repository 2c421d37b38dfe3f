//===- TensorFileTest.cpp - files of strangers ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FileBytes.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

constexpr llvm::StringLiteral kHeader =
    R"({"__metadata__":{"format":"pt"},)"
    R"("a":{"dtype":"F16","shape":[2,4],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"I64","shape":[2,1],"data_offsets":[16,32]},)"
    R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[32,32]}})";

std::string makeSample() { return makeFile(kHeader, std::string(32, 'x')); }

/// A header of one tensor "w".
std::string makeHeader(llvm::StringRef dtype, llvm::StringRef shape,
                       llvm::StringRef offsets) {
  return llvm::formatv(
      R"({{"w":{{"dtype":{0},"shape":{1},"data_offsets":{2}}})", dtype, shape,
      offsets);
}

TEST(TensorFileTest, ReadsTensorsInTheOrderOfTheirBytes) {
  auto file = readFile(makeSample());
  ASSERT_TRUE(bool(file));
  ASSERT_EQ(file->getTensors().size(), 3u);
  const TensorInfo &a = file->getTensors()[0], &none = file->getTensors()[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type->element, "f16");
  EXPECT_EQ(llvm::ArrayRef<int64_t>(a.shape), llvm::ArrayRef<int64_t>({2, 4}));
  EXPECT_EQ(a.data.size(), 16u);
  EXPECT_EQ(none.data.size(), 0u);
  EXPECT_EQ(file->getMetadata().lookup("format"), "pt");
}

TEST(TensorFileTest, NamesWhatIsWrong) {
  auto entry = [](llvm::StringRef dtype, const std::string &shape,
                  llvm::StringRef offsets) {
    return makeFile(makeHeader(dtype, shape, offsets), "12");
  };
  const std::pair<std::string, const char *> cases[] = {
      {"", "the header has 0 bytes and the file 0"},
      {"1234567", "and the file 7: legal is"},
      {makeFile("{}", "", 3), "the header has 3 bytes and the file 10"},
      {makeFile("{}", "", ~uint64_t(0)), "or a part of one"},
      {makeFile("{"), "the header is not JSON"},
      {makeFile("\xff{}"), "the header is not JSON"},
      {makeFile("[]"), "the header is not a JSON object"},
      {makeFile(std::string(1 << 20, '[')), "is nested more than 64 deep"},
      {makeFile(R"({"w":1,"w":2})"), "in the header, 'w' is there twice"},
      {makeFile(R"({"w":1,"\u0077":2})"), "in the header, 'w' is there twice"},
      {makeFile(R"({"w":{"dtype":"U8","dtype":"I8"}})"), "'dtype' is there"},
      {makeFile(R"({"w":5})"), "tensor 'w' is 5: legal is an object"},
      {makeFile("{\"a\\u001b\":5}"), "tensor 'a\\x1b' is 5"},
      {makeFile(R"({"w":{}})"), "'w' has dtype missing: legal is BOOL, F4"},
      {entry(R"("F7")", "[2]", "[0,2]"), "dtype \"F7\": legal is BOOL"},
      {entry("3", "[2]", "[0,2]"), "dtype 3"},
      {entry(R"("U8")", "[-2]", "[0,2]"), "shape [-2]: legal is a list of"},
      {entry(R"("U8")", "[9223372036854775808]", "[0,2]"), "has shape [9223"},
      {entry(R"("U8")", "[\"" + std::string(999, '1') + "\"]", "[0,2]"),
       "111...: legal is a list of sizes"},
      {entry(R"("U8")", "[2.5]", "[0,2]"), "shape [2.5]"},
      {entry(R"("U8")", "[true]", "[0,2]"), "shape [true]"},
      {entry(R"("U8")", "2", "[0,2]"), "shape 2"},
      {entry(R"("U8")", "[4611686018427387904,4]", "[0,2]"),
       "has 2 bytes: legal is what U8 of shape [4611686018427387904,4] takes"},
      {entry(R"("U64")", "[2305843009213693952]", "[0,0]"), "has 0 bytes"},
      {entry(R"("F16")", "[2]", "[0,2]"), "shape [2] takes, 4"},
      {entry(R"("F4")", "[3]", "[0,2]"), "what F4 of shape [3] takes"},
      {entry(R"("U8")", "[2]", "[2,0]"), "data_offsets [2,0]: legal is [begin"},
      {entry(R"("U8")", "[2]", "[0]"), "data_offsets [0]"},
      {entry(R"("U8")", "[2]", "[-2,0]"), "data_offsets [-2,0]"},
      {entry(R"("U8")", "[3]", "[0,3]"), "bytes 0 to 3: legal is up to 2, wh"},
      {entry(R"("U8")", "[1]", "[0,1]"), "1 bytes follow 'w': legal is none"},
      {entry(R"("U8")", "[1]", "[1,2]"), "start at 0, where the header ends"},
      {makeFile(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                "123"),
       "'b' has the bytes 1 to 3: legal is a start at 2, where 'a' ends"},
      {makeFile(R"({"__metadata__":{"a":1}})"), "'a' of __metadata__ is 1"},
      {makeFile(R"({"__metadata__":"a"})"), "__metadata__ is not an object"}};
  for (const auto &[bytes, message] : cases) {
    std::string error = getError(bytes);
    EXPECT_TRUE(isOfFile(error));
    EXPECT_TRUE(contains(error, message));
  }
}

TEST(TensorFileTest, RefusesEachPartOfAFile) {
  std::string whole = makeSample();
  EXPECT_EQ(getError(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(isOfFile(getError(llvm::StringRef(whole).take_front(size))))
        << size;
}

/// Bytes that mean something in a header come more often than others.
char drawByte(std::mt19937 &random) {
  constexpr llvm::StringLiteral likely = "{}[]\",:\\0123456789-.e ab_";
  return random() % 4 ? likely[random() % likely.size()]
                      : static_cast<char>(random());
}

/// Whatever a file holds, it is read or refused with a reason, and all that was
/// read lies in the file.
void expectReadOrRefused(const std::string &bytes) {
  auto file = readFile(bytes);
  if (!file) {
    EXPECT_TRUE(isOfFile(llvm::toString(file.takeError())));
    return;
  }
  size_t total = 0;
  for (const TensorInfo &tensor : file->getTensors()) // reads each byte
    total += std::string(tensor.data.begin(), tensor.data.end()).size();
  EXPECT_LE(total, bytes.size());
}

TEST(TensorFileTest, ReadsOrRefusesChangedFiles) {
  std::seed_seq seed{7}; // the same files in every run
  std::mt19937 random(seed);
  std::string whole = makeSample();
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int change = random() % 4; change >= 0; --change) {
      size_t at = random() % bytes.size();
      switch (random() % 3) {
      case 0:
        bytes[at] = drawByte(random);
        break;
      case 1:
        bytes.erase(at, 1 + random() % 4);
        break;
      default:
        bytes.insert(at, 1 + random() % 4, drawByte(random));
      }
    }
    // Mostly with the right length, so that the header is reached.
    if (random() % 4 && bytes.size() >= 40)
      llvm::support::endian::write64le(bytes.data(), bytes.size() - 40);
    expectReadOrRefused(bytes);
  }
}

TEST(TensorFileTest, ReadsOrRefusesRandomHeaders) {
  std::seed_seq seed{8}; // the same files in every run
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string header(random() % 60, '\0');
    for (char &byte : header)
      byte = drawByte(random);
    expectReadOrRefused(makeFile("{" + header + "}"));
  }
}

TEST(TensorFileTest, HeadersThatAreMadeAreRead) {
  llvm::SmallVector<TensorSpec> specs = {
      {"narrow", findStoredType("U8"), {3}},
      {"b", findStoredType("F32"), {1, 2}},
      {"a \"quoted\"\n", findStoredType("U32"), {2}},
      {"none", findStoredType("F16"), {0, 5}}};
  TensorFileHeader header =
      makeTensorFileHeader(specs, {{"key", "text"}, {"other", ""}});
  EXPECT_EQ(header.bytes.size() % 8, 0u);
  auto file = readFile(header.bytes + std::string(19, 'x'));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->getMetadata().size(), 2u);
  const char *names[] = {"a \"quoted\"\n", "b", "none", "narrow"};
  for (auto [tensor, name] : llvm::zip_equal(file->getTensors(), names))
    EXPECT_EQ(tensor.name, name);
  EXPECT_EQ(header.offsets[2], header.bytes.size());
  EXPECT_EQ(header.offsets[1], header.bytes.size() + 8);
  EXPECT_EQ(header.offsets[0], header.bytes.size() + 16);
}

} // namespace
