//===- CandidateListTest.cpp - which schedules to measure -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/CandidateList.h"
#include "TunerTest.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "nm_sparse/InitAll.h"
#include <array>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

std::unique_ptr<CandidateList> makeList(int64_t tokens) {
  auto product = makeTunable(makeProblem(tokens), getH200());
  EXPECT_TRUE(bool(product));
  auto list = CandidateList::create(*product, getH200());
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

/// The fields of a schedule, in the order of its text.
std::array<Attribute, 7> getFields(MLIRContext &context, StringRef text) {
  auto schedule =
      dyn_cast_or_null<ScheduleAttr>(parseAttribute(text, &context));
  EXPECT_TRUE(schedule) << text.str();
  Builder b(&context);
  auto getExtent = [&](unsigned dim) {
    return b.getI64IntegerAttr(schedule.getTile()[dim]);
  };
  return {getExtent(0),
          getExtent(1),
          getExtent(2),
          Attribute(schedule.getProduct()),
          schedule.getTransfers(),
          Attribute(schedule.getPipeline()),
          Attribute(schedule.getGrid())};
}

TEST(CandidateListTest, NeighboursDifferInOneFieldAndComeOnce) {
  std::unique_ptr<CandidateList> list = makeList(64);
  std::vector<std::string> first = list->takeFirst(4);
  std::vector<std::string> near = list->takeNeighbours(first[0], 6);
  EXPECT_FALSE(near.empty());
  EXPECT_LE(near.size(), 6u);
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto centre = getFields(context, first[0]);
  std::set<std::string> all(first.begin(), first.end());
  std::map<size_t, size_t> ofField;
  for (const std::string &schedule : near) {
    EXPECT_TRUE(all.insert(schedule).second) << schedule;
    SmallVector<size_t> changed;
    for (auto [field, pair] :
         llvm::enumerate(llvm::zip_equal(centre, getFields(context, schedule))))
      if (std::get<0>(pair) != std::get<1>(pair))
        changed.push_back(field);
    ASSERT_EQ(changed.size(), 1u) << schedule << " and " << first[0];
    ++ofField[changed.front()];
  }
  for (auto [field, count] : ofField)
    EXPECT_LE(count, 2u) << field;
  EXPECT_TRUE(list->takeNeighbours("of no list", 6).empty());
  EXPECT_TRUE(list->takeNeighbours(first[0], 0).empty());
}

} // namespace
