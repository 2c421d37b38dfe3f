//===- CandidateListTest.cpp - which schedules to measure -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/CandidateList.h"
#include "TunerTest.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

std::unique_ptr<CandidateList> makeList(int64_t tokens) {
  auto product = makeTunable(makeProblem(tokens), getH200());
  EXPECT_TRUE(bool(product));
  auto list = CandidateList::create(*product, getH200(), Objective::Time);
  EXPECT_TRUE(bool(list));
  return std::move(*list);
}

TEST(CandidateListTest, EachFamilyIsThere) {
  // Few tokens, for which tensor cores and shuffles come into question.
  std::unique_ptr<CandidateList> list = makeList(16);
  std::vector<std::string> first = list->takeFirst(8);
  EXPECT_EQ(first.size(), 8u);
  for (StringRef product : {"product = mma<", "product = panel_dot<"})
    EXPECT_TRUE(llvm::any_of(first, [&](StringRef schedule) {
      return schedule.contains(product);
    })) << product.str();
  // The first one is the model's choice, whatever the number.
  EXPECT_EQ(makeList(16)->takeFirst(1), std::vector<std::string>{first[0]});
}

TEST(CandidateListTest, NeighboursDifferInOneFieldAndComeOnce) {
  std::unique_ptr<CandidateList> list = makeList(64);
  std::vector<std::string> first = list->takeFirst(4);
  std::vector<std::string> near = list->takeNeighbours(first[0], 6);
  EXPECT_FALSE(near.empty());
  EXPECT_LE(near.size(), 6u);
  std::set<std::string> all(first.begin(), first.end());
  for (const std::string &schedule : near) {
    EXPECT_TRUE(all.insert(schedule).second) << schedule;
    // The texts have a common beginning and end, around the field.
    size_t begin = 0, end = 0;
    size_t most = std::min(schedule.size(), first[0].size());
    while (begin < most && schedule[begin] == first[0][begin])
      ++begin;
    while (end < most - begin && schedule[schedule.size() - 1 - end] ==
                                     first[0][first[0].size() - 1 - end])
      ++end;
    EXPECT_GT(begin + end, most / 2) << schedule << " and " << first[0];
  }
  EXPECT_TRUE(list->takeNeighbours("of no list", 6).empty());
  EXPECT_TRUE(list->takeNeighbours(first[0], 0).empty());
}

} // namespace
