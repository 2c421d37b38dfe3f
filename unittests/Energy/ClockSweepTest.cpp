//===- ClockSweepTest.cpp - sweeps of strangers ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/ClockModel.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::nm_sparse;

namespace {

std::string makePoint(int core, double us) {
  return llvm::formatv(
      R"({{"asked_core_mhz":{0},"asked_memory_mhz":2619,"core_mhz":{0},)"
      R"("memory_mhz":2619,"volts":0.8,"us":{1},"watts":300})",
      core, us);
}

std::string makeLayer(llvm::StringRef points, llvm::StringRef more = "") {
  return llvm::formatv(R"({{"layer":"a","type":"f16","tokens":8,"outputs":64,)"
                       R"("inputs":128,"encoding":"2:4"{1},"points":[{0}]})",
                       points, more);
}

std::string makePoints() {
  std::string points;
  for (int i = 0; i < 6; ++i)
    points += (i ? "," : "") + makePoint(1000 + 100 * i, 20 - i);
  return points;
}

std::string makeSweep(llvm::StringRef layers) {
  return llvm::formatv(R"({{"gpu":"NVIDIA H200","layers":[{0}]})", layers);
}

std::string getError(llvm::StringRef text) {
  auto sweep = parseClockSweep(text, "x.json");
  return sweep ? "" : llvm::toString(sweep.takeError());
}

TEST(ClockSweepTest, ReadsWhatThereIs) {
  auto sweep = parseClockSweep(
      makeSweep(makeLayer(
          makePoints(),
          R"(,"parts":{"fixed_us":1,"core_us":2,"memory_us":3},"unlocked":)"
          R"({"core_mhz":1900,"memory_mhz":2619,"us":10,"watts":500})")),
      "x.json");
  ASSERT_TRUE(bool(sweep));
  const SweepLayer &layer = sweep->layers.front();
  EXPECT_EQ(layer.points.size(), 6u);
  EXPECT_EQ(layer.getSamples().size(), 7u);
  EXPECT_EQ(layer.inputs, 128);
  EXPECT_DOUBLE_EQ(layer.points[1].sample.seconds, 19e-6);
  EXPECT_DOUBLE_EQ(layer.parts->memory, 3e-6);
  EXPECT_EQ(layer.unlocked->sample.at.volts, 0);
  EXPECT_TRUE(layer.points[0].keptClocks());
  EXPECT_FALSE(layer.unlocked->keptClocks());
}

TEST(ClockSweepTest, NamesWhatIsWrong) {
  std::string points = makePoints(), one = makePoint(1000, 5);
  std::string same = one;
  for (int i = 0; i < 9; ++i)
    same += "," + one;
  const std::pair<std::string, const char *> cases[] = {
      {"", "x.json: the sweep is not JSON"},
      {"[]", "the sweep is not a JSON object"},
      {std::string(1 << 20, '['), "is nested more than 64 deep"},
      {R"({"gpu":"a","gpu":"b"})", "'gpu' is there twice"},
      {"{}", "x.json: the sweep: 'gpu' is not a string"},
      {R"({"gpu":"a"})", "'layers' is not a list of at least one object"},
      {makeSweep(""), "'layers' is not a list"},
      {makeSweep("1"), "layer number 0: is not an object"},
      {makeSweep("{}"), "layer number 0: 'layer' is not a string"},
      {makeSweep(makeLayer("")), "'points' is not a list"},
      {makeSweep(makeLayer("7")), "layer 'a', point 0: is not an object"},
      {makeSweep(makeLayer("{}")),
       "point 0: 'core_mhz' is not a number from 1 to"},
      {makeSweep(makeLayer(one)), "has 1 pairs of clocks, fewer than"},
      {makeSweep(makeLayer(same)), "has 1 pairs of clocks, fewer than"},
      {makeSweep(makeLayer(points + "," + makePoint(900, -1))),
       "layer 'a', point 6: 'us' is not a number from"},
      {makeSweep(makeLayer(points, R"(,"parts":{"fixed_us":"1"})")),
       "layer 'a', parts: 'fixed_us' is not a number"},
      {makeSweep(makeLayer(points, R"(,"parts":[])")),
       "'parts' is not an object"},
      {makeSweep(makeLayer(points, R"(,"batch":0)")),
       "'batch' is not a whole number from 1 to"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_NE(getError(text).find(message), std::string::npos)
        << getError(text) << " for " << message;
  std::string many = makeLayer(points);
  for (int i = 0; i < 100; ++i)
    many += "," + makeLayer(points);
  EXPECT_NE(getError(makeSweep(many)).find("at most 100 objects"),
            std::string::npos);
}

/// Bytes that are lost, changed or repeated are read or refused, and what is
/// read can be fitted to or is refused.
TEST(ClockSweepTest, ReadsOrRefusesWhateverThereIs) {
  // The same in each run. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(3);
  const std::string whole = makeSweep(makeLayer(
      makePoints(), R"(,"parts":{"fixed_us":1,"core_us":2,"memory_us":3})"));
  const llvm::StringRef pieces = "0123456789.-e,:{}[]\"n\\";
  size_t read = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = whole;
    for (size_t i = 0, edits = 1 + random() % 3; i < edits; ++i) {
      size_t at = random() % text.size();
      char byte = random() % 4 ? pieces[random() % pieces.size()]
                               : static_cast<char>(random());
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 4);
      else if (random() % 2)
        text.insert(at, 1, byte);
      else
        text[at] = byte;
    }
    auto sweep = parseClockSweep(text, "x.json");
    if (!sweep) {
      EXPECT_EQ(llvm::toString(sweep.takeError()).rfind("x.json: ", 0), 0u);
      continue;
    }
    ++read;
    auto model = ClockModel::fit(std::move(*sweep));
    if (!model) {
      llvm::consumeError(model.takeError());
      continue;
    }
    ClockAdvice advice = model->advise(model->getLayer(0), 0.05);
    EXPECT_TRUE(std::isfinite(advice.chosen.seconds)) << text;
    EXPECT_TRUE(std::isfinite(advice.chosen.watts)) << text;
    auto other = model->predict({0, 0, 0});
    if (other)
      model->advise(*other, 0);
  }
  EXPECT_GT(read, 1000u);
}

} // namespace
