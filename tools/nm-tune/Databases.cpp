//===- Databases.cpp - databases that are merged or verified --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Databases.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Support/OutputFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static llvm::Error write(StringRef path, const TuningDatabase &database) {
  std::string text;
  llvm::raw_string_ostream os(text);
  database.print(os);
  auto file = OutputFile::create(path, std::move(text));
  return file ? file->keep() : file.takeError();
}

llvm::Error nm_sparse::mergeDatabases(const NmTuneOptions &options) {
  TuningDatabase merged;
  const std::string &path = options.search.database;
  std::vector<std::string> files = options.files;
  if (llvm::sys::fs::exists(path))
    files.push_back(path);
  for (const std::string &file : files)
    if (llvm::Error error = merged.read(file))
      return error;
  if (llvm::Error error = write(path, merged))
    return error;
  llvm::outs() << merged.size() << " entries of " << files.size()
               << " files in " << path << "\n";
  return llvm::Error::success();
}

namespace {
/// An entry, and what is wrong with it.
struct Verified {
  const TunedEntry *entry;
  std::string fault;   ///< Empty: it is as it was measured.
  std::string unknown; ///< Why that cannot be said.
};
} // namespace

static void verify(Verified &own) {
  const TunedEntry &entry = *own.entry;
  const Chip *chip = findGPU(entry.problem.gpu);
  if (!chip) {
    own.fault = "this compiler knows no GPU " + entry.problem.gpu;
    return;
  }
  auto product = makeTunable(entry.problem, *chip);
  if (!product) {
    own.unknown = llvm::toString(product.takeError());
    return;
  }
  auto code = hashCode(makeRequest(*product, *chip, 0), chip->name, chip->gpu,
                       entry.schedule);
  if (!code)
    own.fault = llvm::toString(code.takeError());
  else if (entry.code.empty())
    own.unknown = "it does not say with what code it was measured";
  else if (*code != entry.code)
    own.fault = "its kernel has other code now than the one that was measured";
}

static void print(const Verified &own, StringRef text) {
  const TunedProblem &problem = own.entry->problem;
  llvm::outs() << llvm::formatv(
      "{0}, {1} x {2} {3}, {4}, {5} tokens: {6}\n", problem.gpu, problem.inputs,
      problem.outputs, problem.type, problem.encoding, problem.tokens, text);
}

llvm::Expected<bool> nm_sparse::verifyDatabase(const NmTuneOptions &options) {
  TuningDatabase database;
  if (llvm::Error error = database.read(options.search.database))
    return std::move(error);
  std::vector<Verified> all;
  for (const TunedEntry *entry : database.getEntries())
    all.push_back({entry, "", ""});
  llvm::DefaultThreadPool pool(
      llvm::hardware_concurrency(unsigned(options.jobs)));
  for (Verified &own : all)
    pool.async([&own] { verify(own); });
  pool.wait();

  TuningDatabase kept;
  size_t unknown = 0;
  for (const Verified &own : all) {
    unknown += !own.unknown.empty();
    if (own.fault.empty())
      kept.add(*own.entry);
    else
      print(own, own.fault);
  }
  size_t faults = all.size() - kept.size();
  llvm::outs() << llvm::formatv(
      "{0} entries: {1} as they were measured, {2} not, {3} of which this "
      "cannot be said\n",
      all.size(), kept.size() - unknown, faults, unknown);
  if (!options.prunes || faults == 0)
    return faults == 0;
  if (llvm::Error error = write(options.search.database, kept))
    return std::move(error);
  llvm::outs() << faults << " entries taken out\n";
  return true;
}
