//===- CodePlanTest.cpp - which code a constant weight becomes ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Immediate/CodePlan.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"
#include <cstring>
#include <map>
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

class CodePlanTest : public ::testing::Test {
protected:
  /// A weight of f32 that keeps `density` of its elements.
  DenseWeight makeWeight(int64_t rows, int64_t outputs, double density) {
    DenseWeight weight{rows, outputs, Builder(&context).getF32Type(), {}};
    weight.bytes.resize(rows * outputs * sizeof(float));
    // The same numbers in every run.
    // NOLINTNEXTLINE(bugprone-random-generator-seed)
    std::mt19937 random(0);
    std::uniform_real_distribution<double> unit(0, 1);
    for (int64_t i = 0; i < rows * outputs; ++i)
      if (unit(random) < density)
        set(weight, i, static_cast<float>(i + 1));
    return weight;
  }
  static void set(DenseWeight &weight, int64_t at, float value) {
    std::memcpy(weight.bytes.data() + at * sizeof(float), &value, sizeof value);
  }
  static int64_t count(const CodeSection &section) {
    int64_t instructions = 0;
    for (const CodeRow &row : section)
      instructions += 1 + static_cast<int64_t>(row.elements.size());
    return instructions;
  }

  MLIRContext context;
};

/// Rows from the first to the last.
SmallVector<int64_t> getRows(const DenseWeight &weight) {
  return llvm::to_vector(llvm::seq<int64_t>(0, weight.rows));
}

/// Every element is in one section, that of its panel, once.
TEST_F(CodePlanTest, HoldsEveryElementOnce) {
  DenseWeight weight = makeWeight(70, 50, 0.1);
  for (int64_t panel : {32, 64})
    for (int64_t shares : {1, 4, 16}) {
      CodePlan plan(weight, getRows(weight), panel, shares);
      int64_t panels = (50 + panel - 1) / panel;
      ASSERT_EQ(plan.getSections().size(), size_t(panels * shares));
      std::map<std::pair<int64_t, int64_t>, float> found;
      for (auto [number, section] : llvm::enumerate(plan.getSections()))
        for (const CodeRow &row : section) {
          EXPECT_FALSE(row.elements.empty());
          for (const CodeRow::Element &element : row.elements) {
            int64_t output = int64_t(number) / shares * panel + element.output;
            EXPECT_TRUE(
                found.insert({{row.row, output}, element.value}).second);
          }
        }
      int64_t kept = 0;
      for (int64_t row = 0; row < 70; ++row)
        for (int64_t output = 0; output < 50; ++output)
          if (weight.getBits(row, output) != 0) {
            ++kept;
            EXPECT_EQ(found.at({row, output}), weight.get(row, output));
          }
      EXPECT_EQ(found.size(), size_t(kept));
    }
}

/// Shares of a panel differ by a row at most.
TEST_F(CodePlanTest, DividesEvenly) {
  DenseWeight weight = makeWeight(512, 32, 0.1);
  CodePlan plan(weight, getRows(weight), 32, 8);
  int64_t least = count(plan.getSections().front()), most = least;
  for (const CodeSection &section : plan.getSections()) {
    least = std::min(least, count(section));
    most = std::max(most, count(section));
  }
  EXPECT_LE(most - least, 2 * (1 + 32 / 3));
}

/// Rows of a section come in the order that is given.
TEST_F(CodePlanTest, KeepsTheOrderOfRows) {
  DenseWeight weight = makeWeight(70, 32, 0.5);
  SmallVector<int64_t> order = getRows(weight);
  std::reverse(order.begin(), order.end());
  CodePlan plan(weight, order, 32, 1);
  int64_t last = weight.rows;
  for (const CodeRow &row : plan.getSections().front()) {
    EXPECT_LT(row.row, last);
    last = row.row;
  }
}

/// -0 is an element, for an infinite activation makes NaN of it; +0 is none.
TEST_F(CodePlanTest, KeepsNegativeZero) {
  DenseWeight weight = makeWeight(4, 32, 0);
  set(weight, 33, -0.0F);
  CodePlan plan(weight, getRows(weight), 32, 2);
  int64_t elements = 0;
  for (const CodeSection &section : plan.getSections())
    for (const CodeRow &row : section) {
      EXPECT_EQ(row.row, 1);
      elements += static_cast<int64_t>(row.elements.size());
    }
  EXPECT_EQ(elements, 1);
}

} // namespace
