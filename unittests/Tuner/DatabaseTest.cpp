//===- DatabaseTest.cpp - lines of measured schedules ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunerTest.h"
#include "nm_sparse/Tuning/DatabaseFile.h"
#include <cstring>
#include <thread>

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

llvm::Error append(StringRef path, const TunedEntry &entry) {
  auto file = DatabaseFile::open(path);
  return file ? file->append(entry) : file.takeError();
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
  ASSERT_FALSE(append(file.path, entry));
  TunedEntry energy = entry;
  energy.objective = Objective::Energy;
  energy.schedule = "b";
  energy.millijoules = 1.5;
  energy.denseMillijoules = 2.5;
  ASSERT_FALSE(append(file.path, energy));
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
  ASSERT_FALSE(append(file.path, makeEntry(16, 3, "a")));
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
  EXPECT_TRUE(contains(getErrorOf("\"us\":3", "\"us\":3,\"mj\":-1"),
                       "legal are energies above 0 at entry.mj"));
  EXPECT_TRUE(contains(
      getErrorOf("\"version\":1", "\"version\":2,\"objective\":\"edp\""),
      "legal are energies above 0 at entry.mj"));
  EXPECT_TRUE(contains(getErrorOf("}", ""), ":2"));
  EXPECT_EQ(database.size(), 0u);
}

TEST(TuningDatabaseTest, LinesOfOtherSizesArePassedOver) {
  TemporaryFile file;
  TunedEntry other = makeEntry(16, 3, "b");
  other.problem.outputs = 192;
  ASSERT_FALSE(append(file.path, makeEntry(16, 3, "a")));
  ASSERT_FALSE(append(file.path, other));
  TuningDatabase database;
  TuningDatabase::Sizes sizes = {{256, 128}};
  ASSERT_FALSE(database.read(file.path, &sizes));
  EXPECT_EQ(database.size(), 1u);
  EXPECT_EQ(database.find(makeProblem(16))->schedule, "a");
  // Spaces do not hide a number, and lines that are none are still told.
  std::string text = file.read();
  size_t at = text.find("\"outputs\":128");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, strlen("\"outputs\":128"), "\"outputs\" : 128");
  file.write(text + "{\"inputs\":x}\n");
  TuningDatabase again;
  llvm::Error error = again.read(file.path, &sizes);
  EXPECT_TRUE(StringRef(llvm::toString(std::move(error))).contains(":3"));
  file.write(text);
  ASSERT_FALSE(again.read(file.path, &sizes));
  EXPECT_EQ(again.size(), 1u);
}

TEST(TuningDatabaseTest, LinesWithoutAnEndAreEnded) {
  TemporaryFile file;
  ASSERT_FALSE(append(file.path, makeEntry(16, 3, "a")));
  file.write(StringRef(file.read()).rtrim());
  ASSERT_FALSE(append(file.path, makeEntry(64, 3, "b")));
  TuningDatabase database;
  ASSERT_EQ(getError(database, file.path), "");
  EXPECT_EQ(database.size(), 2u);
}

TEST(TuningDatabaseTest, WritersWaitForEachOther) {
  TemporaryFile file;
  constexpr int count = 4;
  std::vector<std::thread> writers;
  writers.reserve(count);
  for (int writer = 0; writer < count; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 25; ++i)
        EXPECT_FALSE(
            append(file.path, makeEntry(100 * writer + i + 1, 3, "a")));
    });
  // One that reads, and puts another file in the place of this one.
  for (int i = 0; i < 10; ++i) {
    auto held = DatabaseFile::open(file.path);
    ASSERT_TRUE(bool(held));
    TuningDatabase now;
    ASSERT_EQ(getError(now, file.path), "");
    ASSERT_FALSE(held->replace(now));
  }
  for (std::thread &writer : writers)
    writer.join();
  TuningDatabase database;
  ASSERT_EQ(getError(database, file.path), "");
  EXPECT_EQ(database.size(), 100u);
}

TEST(TuningDatabaseTest, FilesThatCannotBeWrittenAreNamed) {
  llvm::Error error = append("/no/such/folder/a.jsonl", makeEntry(1, 1, "a"));
  EXPECT_EQ(llvm::toString(std::move(error)),
            "cannot write /no/such/folder/a.jsonl: No such file or directory");
}

} // namespace
