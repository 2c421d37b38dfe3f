//===- CompareSchedulesTest.cpp - schedules of one program ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/CompareSchedules.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

const char *const kProgram = R"(
#w = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<?x64xf32>, %w: tensor<64x64xf32, #w>,
             %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32, #w>)
      outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
)";

const char *const kTiles[] = {
    "#nm_tile.schedule<tile = [16, 64, 32], product = simt<warps = [1, 2]>, "
    "transfers = {x = copy, values = copy, index = resident}, pipeline = "
    "async_groups<stages = 2>, grid = flat>",
    "#nm_tile.schedule<tile = [32, 64, 32], product = simt<warps = [1, 2]>, "
    "transfers = {x = copy, values = copy, index = resident}, pipeline = "
    "async_groups<stages = 2>, grid = flat>"};

RunRequest makeRequest() {
  RunRequest request;
  request.file = "<program>";
  request.program = kProgram;
  request.device = Device::Emulate;
  request.dynamicSize = 20;
  request.storage = "canonical";
  request.check = true;
  return request;
}

std::unique_ptr<ScheduleComparison> compare(const RunRequest &request,
                                            ArrayRef<std::string> schedules) {
  auto made = ScheduleComparison::create(request, 2);
  EXPECT_TRUE(bool(made));
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError());
    return nullptr;
  }
  (*made)->add(schedules);
  llvm::Error error = (*made)->check();
  EXPECT_FALSE(error) << llvm::toString(std::move(error));
  return std::move(*made);
}

TEST(ScheduleComparisonTest, EachIsComparedWithTheReference) {
  auto made = compare(makeRequest(), {kTiles[0], kTiles[1]});
  ASSERT_EQ(made->getSchedules().size(), 2u);
  for (const ComparedSchedule &one : made->getSchedules()) {
    EXPECT_EQ(one.problem, "");
    EXPECT_FALSE(one.isWrong);
    EXPECT_EQ(one.code.size(), 16u);
    EXPECT_EQ(one.us, 0);
  }
  EXPECT_NE(made->getSchedules()[0].code, made->getSchedules()[1].code);
  // Later ones get the same arguments.
  made->add({std::string(kTiles[0])});
  ASSERT_FALSE(made->check());
  EXPECT_EQ(made->getSchedules()[2].problem, "");
  EXPECT_EQ(made->getSchedules()[2].code, made->getSchedules()[0].code);
  EXPECT_TRUE(made->answers());
}

TEST(ScheduleComparisonTest, LargeArraysAreUploadedOnce) {
  // Two comparisons have arrays of their own, and the first one's go with it.
  RunRequest request = makeRequest();
  std::string text = kProgram;
  for (size_t at = 0; (at = text.find("64", at)) != std::string::npos;)
    text.replace(at, 2, "256");
  request.program = text;
  auto first = compare(request, {kTiles[0], kTiles[1]});
  request.seed = 1;
  auto second = compare(request, {kTiles[0]});
  first.reset();
  second->add({std::string(kTiles[1])});
  ASSERT_FALSE(second->check());
  for (const ComparedSchedule &one : second->getSchedules())
    EXPECT_EQ(one.problem, "");
}

TEST(ScheduleComparisonTest, WhatIsRefusedSaysWhy) {
  std::string old = "#nm_tile.schedule<of_old = 1>", large = kTiles[0];
  large.replace(large.find("[16"), 3, "[9999");
  auto made = compare(makeRequest(), {old, large, kTiles[0]});
  ArrayRef<ComparedSchedule> all = made->getSchedules();
  EXPECT_TRUE(StringRef(all[0].problem).contains("is not a schedule"));
  EXPECT_FALSE(all[1].problem.empty());
  EXPECT_FALSE(all[0].isWrong || all[1].isWrong);
  EXPECT_EQ(all[2].problem, "");
}

TEST(ScheduleComparisonTest, WrongResultsAreTold) {
  RunRequest request = makeRequest();
  request.tolerance = 0;
  auto made = compare(request, {kTiles[0]});
  EXPECT_TRUE(made->getSchedules()[0].isWrong);
  EXPECT_TRUE(StringRef(made->getSchedules()[0].problem).contains("FAIL"));
}

TEST(ScheduleComparisonTest, ProgramsOfOtherThanOneProductAreRefused) {
  RunRequest request = makeRequest();
  request.program = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                    "  return %x : tensor<4xf32>\n}\n";
  auto made = ScheduleComparison::create(request, 1);
  ASSERT_FALSE(bool(made));
  EXPECT_EQ(llvm::toString(made.takeError()),
            "<program> has 0 products with an encoded weight: schedules are "
            "compared for programs of one");
}

TEST(ScheduleComparisonTest, CodeNeedsNoDevice) {
  RunRequest request = makeRequest();
  auto first = hashCode(request, "sm_90a", "h200", kTiles[0]);
  ASSERT_TRUE(bool(first));
  auto again = hashCode(request, "sm_90a", "h200", kTiles[0]);
  ASSERT_TRUE(bool(again));
  auto other = hashCode(request, "sm_90a", "h200", kTiles[1]);
  ASSERT_TRUE(bool(other));
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
  auto none = hashCode(request, "sm_90a", "h200", "no schedule");
  EXPECT_FALSE(bool(none));
  llvm::consumeError(none.takeError());
}

} // namespace
