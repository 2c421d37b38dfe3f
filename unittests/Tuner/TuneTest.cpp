//===- TuneTest.cpp - the search, with times that are made up -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunerTest.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Each schedule has the time that `getTime` gives its number; some are wrong,
/// or cannot be compiled.
class FakeMeter : public ProductMeter {
public:
  struct Script {
    std::function<double(size_t)> getTime = [](size_t) { return 10.0; };
    std::function<double(size_t)> getEnergy = [](size_t) { return 1.0; };
    std::set<size_t> wrong, refused;
    double drift = 1; ///< Of the times of a turn over those before.
    std::string deviceError, timeError;
    bool isLost = false; ///< The device answers no more.
    std::vector<SmallVector<size_t>> turns, energyTurns; ///< What was measured.
  };

  explicit FakeMeter(Script &script) : script(script) {}

  void add(ArrayRef<std::string> added) override {
    for (const std::string &schedule : added) {
      ComparedSchedule one;
      one.schedule = schedule;
      one.isWrong = script.wrong.count(schedules.size());
      if (one.isWrong)
        one.problem = "relative error 0.5";
      if (script.refused.count(schedules.size()))
        one.problem = "too much shared memory";
      schedules.push_back(one);
    }
  }
  llvm::Error check() override {
    if (script.deviceError.empty())
      return llvm::Error::success();
    return llvm::createStringError(script.deviceError);
  }
  bool answers() const override { return !script.isLost; }
  llvm::Error time(ArrayRef<size_t> which) override {
    if (!script.timeError.empty())
      return llvm::createStringError(script.timeError);
    for (size_t number : which) {
      EXPECT_TRUE(schedules[number].problem.empty());
      schedules[number].us = factor * script.getTime(number);
    }
    factor *= script.drift;
    script.turns.emplace_back(which);
    return llvm::Error::success();
  }
  llvm::Error measureEnergy(ArrayRef<size_t> which) override {
    for (size_t number : which)
      schedules[number].millijoules = script.getEnergy(number);
    script.energyTurns.emplace_back(which);
    return llvm::Error::success();
  }
  ArrayRef<ComparedSchedule> getSchedules() const override { return schedules; }
  double getDenseUs() const override { return 20; }
  double getDenseMillijoules() const override {
    return script.energyTurns.empty() ? 0 : 4;
  }

private:
  Script &script;
  std::vector<ComparedSchedule> schedules;
  double factor = 1;
};

class TuneTest : public testing::Test {
protected:
  TuneTest() {
    options.database = file.path.str().str();
    options.candidates = 4;
    options.neighbours = 3;
    options.compiler = "c";
    options.driver = "d";
    for (int64_t tokens : {16, 64}) {
      auto product = makeTunable(makeProblem(tokens), getH200());
      EXPECT_TRUE(bool(product));
      product->names.emplace_back("@layer");
      products.push_back(*product);
    }
  }

  /// Tunes the first `count` products.
  std::string run(size_t count = 1) {
    SmallVector<const TunableProduct *> chosen;
    for (const TunableProduct &product : ArrayRef(products).take_front(count))
      chosen.push_back(&product);
    llvm::Error error = tune(
        chosen, getH200(objective), options,
        [&](const TunableProduct &)
            -> llvm::Expected<std::unique_ptr<ProductMeter>> {
          return std::make_unique<FakeMeter>(script);
        },
        [&](const TunedProduct &one) {
          found.push_back(one);
          return found.size() < most;
        });
    return error ? llvm::toString(std::move(error)) : "";
  }

  std::vector<TunedEntry> readEntries() {
    TuningDatabase database;
    EXPECT_FALSE(database.read(file.path));
    std::vector<TunedEntry> entries;
    for (const TunedEntry *entry : database.getEntries())
      entries.push_back(*entry);
    return entries;
  }

  TemporaryFile file;
  size_t most = 100; ///< After so many, the caller has enough.
  Objective objective = Objective::Time;
  TuneOptions options;
  FakeMeter::Script script;
  std::vector<TunableProduct> products;
  std::vector<TunedProduct> found;
};

TEST_F(TuneTest, TheFastestRightScheduleIsKept) {
  script.getTime = [](size_t number) { return number == 2 ? 5.0 : 10.0; };
  script.wrong = {1};
  script.refused = {3};
  ASSERT_EQ(run(), "");
  ASSERT_EQ(found.size(), 1u);
  const TunedProduct &one = found.front();
  EXPECT_EQ(one.entry.us, 5);
  EXPECT_EQ(one.entry.modelUs, 10);
  EXPECT_EQ(one.entry.denseUs, 20);
  EXPECT_EQ(one.wrong.size(), 1u);
  EXPECT_EQ(one.refused.size(), 1u);
  // Those that are right, and then the best of them with its neighbours.
  ASSERT_EQ(script.turns.size(), 2u);
  EXPECT_EQ(script.turns[0], (SmallVector<size_t>{0, 2}));
  EXPECT_EQ(script.turns[1].front(), 2u);
  EXPECT_GT(script.turns[1].size(), 1u);
  std::vector<TunedEntry> entries = readEntries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(toJSON(entries.front()), toJSON(one.entry));
  EXPECT_EQ(entries.front().compiler, "c");
}

TEST_F(TuneTest, ANeighbourMayWin) {
  script.getTime = [](size_t number) { return number == 4 ? 8.0 : 10.0; };
  ASSERT_EQ(run(), "");
  EXPECT_EQ(found.front().entry.us, 8);
  EXPECT_EQ(found.front().entry.modelUs, 10);
}

TEST_F(TuneTest, TimesOfTwoTurnsAreNotMixed) {
  // Clocks fall between the turns: whatever was measured before seems faster.
  script.drift = 2;
  script.getTime = [](size_t number) {
    return number == 1 ? 9.0 : number == 4 ? 8.0 : 10.0;
  };
  ASSERT_EQ(run(), "");
  EXPECT_EQ(found.front().entry.us, 16);
  EXPECT_EQ(found.front().entry.modelUs, 20);
}

TEST_F(TuneTest, WhatIsKnownIsNotMeasuredAgain) {
  ASSERT_EQ(run(), "");
  TuningDatabase database;
  ASSERT_FALSE(database.read(file.path));
  auto unknown = findUnknown(products, database, Objective::Time);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown.front()->problem.tokens, 64);
  EXPECT_EQ(findUnknown(products, database, Objective::Energy).size(), 2u);
}

TEST_F(TuneTest, TheLeastEnergyAmongTheFastest) {
  objective = Objective::Energy;
  script.getTime = [](size_t number) { return 10.0 + double(number); };
  script.getEnergy = [](size_t number) { return 5.0 - double(number); };
  ASSERT_EQ(run(), "");
  // The second is no neighbour of the first; others take too long.
  ASSERT_EQ(script.energyTurns.size(), 1u);
  EXPECT_EQ(script.energyTurns[0], (SmallVector<size_t>{0, 1}));
  EXPECT_EQ(found.front().entry.millijoules, 4);
  EXPECT_EQ(found.front().entry.us, 11);
  EXPECT_EQ(readEntries().front().objective, Objective::Energy);
}

TEST_F(TuneTest, ProductsWithoutARightScheduleAreReported) {
  script.wrong = {0, 1};
  script.refused = {2, 3};
  ASSERT_EQ(run(2), "");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.front().failure,
            "no schedule gives a right result: 2 are wrong, and 2 cannot run; "
            "the first says: relative error 0.5");
  EXPECT_TRUE(readEntries().empty());
}

TEST_F(TuneTest, TheModelsChoiceIsAmongTheEnergies) {
  // It is slow, and frugal.
  objective = Objective::Energy;
  script.getTime = [](size_t number) { return number == 0 ? 30.0 : 10.0; };
  script.getEnergy = [](size_t number) { return number == 0 ? 1.0 : 2.0; };
  ASSERT_EQ(run(), "");
  EXPECT_EQ(found.front().entry.us, 30);
  EXPECT_EQ(found.front().entry.millijoules, 1);
  EXPECT_EQ(script.energyTurns[0].size(), 5u);
}

TEST_F(TuneTest, AProductThatCannotBeMeasuredKeepsNoOtherFromIt) {
  script.timeError = "out of memory";
  ASSERT_EQ(run(2), "");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.back().failure, "out of memory");
  EXPECT_EQ(file.read(), "");
}

TEST_F(TuneTest, DatabasesThatCannotBeWrittenAreSaidFirst) {
  options.database = "/no/such/folder/a.jsonl";
  EXPECT_EQ(run(),
            "cannot write /no/such/folder/a.jsonl: No such file or directory");
  EXPECT_TRUE(script.turns.empty());
}

TEST_F(TuneTest, ErrorsOfTheDeviceEndTheSearch) {
  script.deviceError = "the device is lost";
  script.isLost = true;
  EXPECT_EQ(run(2), "@layer, 16 tokens: the device is lost");
  EXPECT_TRUE(found.empty());
}

TEST_F(TuneTest, ChecksAloneWriteNothing) {
  options.checksOnly = true;
  script.wrong = {1};
  ASSERT_EQ(run(2), "");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.front().measured, 3u);
  EXPECT_EQ(found.front().wrong.size(), 1u);
  EXPECT_TRUE(script.turns.empty());
  EXPECT_EQ(file.read(), "");
}

TEST_F(TuneTest, TheCallerMayHaveEnough) {
  most = 1;
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(readEntries().size(), 1u);
}

TEST_F(TuneTest, NoProductIsBegunWhenTimeIsUp) {
  options.minutes = 0;
  ASSERT_EQ(run(2), "");
  EXPECT_TRUE(found.empty());
}

} // namespace
