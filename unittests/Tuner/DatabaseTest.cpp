//===- DatabaseTest.cpp - lines of measured schedules ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunerTest.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

TunedEntry makeEntry(int64_t tokens, double us, StringRef schedule) {
  TunedEntry entry;
  entry.problem = makeProblem(tokens);
  entry.schedule = schedule.str();
  entry.us = us;
  return entry;
}

std::string getError(TuningDatabase &database, StringRef path) {
  llvm::Error error = database.read(path);
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(TuningDatabaseTest, LinesAreReadAsTheyWereAppended) {
  TemporaryFile file;
  TunedEntry entry = makeEntry(16, 3.5, "a");
  entry.spread = 0.25;
  entry.denseUs = 7;
  entry.code = "00ff";
  entry.compiler = "c";
  entry.driver = "13.0";
  ASSERT_FALSE(TuningDatabase::append(file.path, entry));
  TunedEntry energy = entry;
  energy.objective = Objective::Energy;
  energy.schedule = "b";
  energy.millijoules = 1.5;
  energy.denseMillijoules = 2.5;
  ASSERT_FALSE(TuningDatabase::append(file.path, energy));
  // Readers of the first version know no objectives, and must not take such
  // entries for the fastest.
  auto [first, second] = StringRef(file.read()).split('\n');
  EXPECT_NE(first.find("\"version\":1"), StringRef::npos);
  EXPECT_EQ(first.find("objective"), StringRef::npos);
  EXPECT_NE(second.find("\"version\":2"), StringRef::npos);

  TuningDatabase database;
  ASSERT_EQ(getError(database, file.path), "");
  EXPECT_EQ(database.size(), 2u);
  const TunedEntry *found = database.find(entry.problem);
  ASSERT_TRUE(found);
  EXPECT_EQ(toJSON(*found), toJSON(entry));
  found = database.find(entry.problem, Objective::Energy);
  ASSERT_TRUE(found);
  EXPECT_EQ(toJSON(*found), toJSON(energy));
  EXPECT_FALSE(database.find(entry.problem, Objective::EDP));
}

TEST(TuningDatabaseTest, TheBetterEntryStays) {
  TuningDatabase database;
  for (auto [us, schedule] :
       {std::pair(4.0, "a"), std::pair(3.0, "b"), std::pair(5.0, "c")})
    database.add(makeEntry(16, us, schedule));
  EXPECT_EQ(database.find(makeProblem(16))->schedule, "b");
  // By energy, the one of least energy, though it takes longer.
  for (auto [us, millijoules] : {std::pair(4.0, 1.0), std::pair(3.0, 2.0)}) {
    TunedEntry entry = makeEntry(16, us, "d");
    entry.objective = Objective::Energy;
    entry.millijoules = millijoules;
    database.add(entry);
  }
  EXPECT_EQ(database.find(makeProblem(16), Objective::Energy)->us, 4.0);
}

TEST(TuningDatabaseTest, TheNearestNumberOfTokensIsTaken) {
  TuningDatabase database;
  database.add(makeEntry(16, 4, "few"));
  database.add(makeEntry(100, 4, "many"));
  EXPECT_EQ(database.find(makeProblem(8))->schedule, "few");
  EXPECT_EQ(database.find(makeProblem(60))->schedule, "many");
  EXPECT_FALSE(database.find(makeProblem(7)));
  EXPECT_FALSE(database.find(makeProblem(201)));
  EXPECT_FALSE(database.findExact(makeProblem(60)));
  EXPECT_TRUE(database.findExact(makeProblem(100)));
  // Numbers of another layer are never used.
  TunedProblem other = makeProblem(16);
  other.outputs = 192;
  EXPECT_FALSE(database.find(other));
}

TEST(TuningDatabaseTest, LinesThatAreNoneAreNamed) {
  TemporaryFile file;
  TuningDatabase database;
  ASSERT_FALSE(TuningDatabase::append(file.path, makeEntry(16, 3, "a")));
  std::string line = file.read();
  auto getErrorOf = [&](StringRef from, StringRef to) {
    std::string text = line;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    text.replace(at, from.size(), to.str());
    file.write("\n" + text);
    return getError(database, file.path);
  };
  auto contains = [](const std::string &text, StringRef part) {
    return StringRef(text).contains(part);
  };
  EXPECT_TRUE(contains(getErrorOf("\"version\":1", "\"version\":3"),
                       ":2: this compiler reads versions 1 and 2"));
  EXPECT_TRUE(contains(getErrorOf("\"version\":1", "\"version\":2"),
                       "missing value at entry.objective"));
  EXPECT_TRUE(contains(
      getErrorOf("\"version\":1", "\"version\":2,\"objective\":\"speed\""),
      "legal are time, energy and edp"));
  EXPECT_TRUE(
      contains(getErrorOf("\"us\":3", "\"us\":0"), "legal are times above 0"));
  EXPECT_TRUE(contains(getErrorOf("\"us\":3", "\"us\":3,\"mj\":\"x\""),
                       "expected number at entry.mj"));
  EXPECT_TRUE(contains(getErrorOf("}", ""), ":2"));
  EXPECT_EQ(database.size(), 0u);
}

TEST(TuningDatabaseTest, FilesThatCannotBeWrittenAreNamed) {
  llvm::Error error =
      TuningDatabase::append("/no/such/folder/a.jsonl", makeEntry(1, 1, "a"));
  EXPECT_EQ(llvm::toString(std::move(error)),
            "cannot write /no/such/folder/a.jsonl: No such file or directory");
}

} // namespace
