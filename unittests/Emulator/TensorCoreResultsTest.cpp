//===- TensorCoreResultsTest.cpp - the results of a GPU -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares, bit by bit, with what bench/tensor_core_numerics.cu printed on a
// GPU: some of its lines on an H200, and the file NMS_TENSOR_CORE_RESULTS, of
// NMS_TENSOR_CORE_CHIP (sm_90a).
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpgroupProduct.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

using namespace mlir::nm_sparse::emulator;

namespace {

struct Line {
  std::string mnemonic;
  unsigned selector = 0;
  std::vector<uint32_t> a, b, accumulators, metadata, results;
  unsigned m = 0, n = 0, k = 0;
  ProductTypes types;
  Sparsity sparsity;
};

Line parseLine(const std::string &text) {
  Line line;
  std::istringstream words(text);
  std::string word;
  words >> line.mnemonic >> std::dec >> line.selector;
  std::vector<uint32_t> *lists[] = {&line.a, &line.b, &line.accumulators,
                                    &line.metadata, &line.results};
  int list = -1;
  while (words >> word) {
    if (word == "|")
      ++list;
    else
      lists[list]->push_back(
          static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
  }
  llvm::SmallVector<StringRef> parts;
  StringRef(line.mnemonic).split(parts, '.');
  std::vector<ElementType> types;
  for (StringRef part : parts) {
    if (part.starts_with("sp"))
      line.sparsity = {true, part.contains("ordered")};
    if (part.starts_with("m") && part.contains('k')) {
      StringRef shape = part;
      shape.consume_front("m");
      shape.consumeInteger(10, line.m);
      shape.consume_front("n");
      shape.consumeInteger(10, line.n);
      shape.consume_front("k");
      shape.consumeInteger(10, line.k);
    }
    if (auto type = findElementType(part))
      types.push_back(*type);
  }
  line.types = {types[1], types[2], types[0]};
  return line;
}

std::string compute(Line &line, StringRef chip) {
  bool isWarpgroup = line.m == 64;
  unsigned depth = line.sparsity.isSparse ? line.k / 2 : line.k;
  DotNumerics numerics = getDotNumerics(chip, isWarpgroup, line.types.a, depth);
  if (!isWarpgroup) {
    WarpProduct product{line.m,     line.n,        line.k,
                        line.types, line.sparsity, numerics};
    return runWarpProduct(product, line.a.data(), line.b.data(),
                          line.accumulators.data(), line.metadata.data(),
                          line.selector);
  }
  WarpgroupProduct product;
  product.n = line.n;
  product.k = line.k;
  product.types = line.types;
  product.sparsity = line.sparsity;
  product.isRegisterA = true;
  WarpgroupOperands operands;
  operands.a = line.a.data();
  operands.descriptorB = uint64_t(8) << 16 | uint64_t(8) << 32;
  operands.metadata = line.metadata.data();
  operands.selector = line.selector;
  operands.accumulators = line.accumulators.data();
  const char *shared = reinterpret_cast<const char *>(line.b.data());
  return multiplyWarpgroup(product, numerics, operands,
                           [&](uint32_t address) { return shared + address; });
}

void compareWithFile(const std::string &path, StringRef chip) {
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  struct Count {
    unsigned words = 0, wrong = 0;
    std::string first;
  };
  std::map<std::string, Count> counts;
  for (std::string text; std::getline(file, text);) {
    Line line = parseLine(text);
    std::string error = compute(line, chip);
    ASSERT_EQ(error, "") << line.mnemonic;
    Count &count = counts[line.mnemonic];
    for (size_t i = 0; i < line.results.size(); ++i) {
      ++count.words;
      if (line.results[i] == line.accumulators[i])
        continue;
      ++count.wrong;
      std::ostringstream first;
      first << "word " << i << ": " << std::hex << line.accumulators[i]
            << " instead of " << line.results[i];
      if (count.first.empty())
        count.first = first.str();
    }
  }
  EXPECT_FALSE(counts.empty()) << path;
  for (const auto &[mnemonic, count] : counts)
    EXPECT_EQ(count.wrong, 0u) << mnemonic << ": " << count.wrong << " of "
                               << count.words << ", " << count.first;
}

TEST(TensorCoreResults, AreThoseOfAnH200) {
  compareWithFile(NMS_EMULATOR_INPUTS "/h200-tensor-cores.txt", "sm_90a");
}

TEST(TensorCoreResults, AreThoseOfTheFile) {
  const char *path = std::getenv("NMS_TENSOR_CORE_RESULTS");
  if (!path)
    GTEST_SKIP() << "NMS_TENSOR_CORE_RESULTS names no file";
  const char *chip = std::getenv("NMS_TENSOR_CORE_CHIP");
  compareWithFile(path, chip ? chip : "sm_90a");
}

} // namespace
