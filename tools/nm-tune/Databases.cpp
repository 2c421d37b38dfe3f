//===- Databases.cpp - databases that are merged or verified --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Databases.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Tuning/DatabaseFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Error nm_sparse::mergeDatabases(const NmTuneOptions &options) {
  TuningDatabase merged;
  for (const std::string &file : options.files)
    if (llvm::Error error = merged.read(file))
      return error;
  const std::string &path = options.search.database;
  auto file = DatabaseFile::open(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = merged.read(path))
    return error;
  if (llvm::Error error = file->replace(merged))
    return error;
  llvm::outs() << merged.size() << " entries in " << path << "\n";
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
    own.unknown = "this compiler knows no GPU " + entry.problem.gpu;
    return;
  }
  TuneTarget target = {chip, entry.objective};
  auto product = makeTunable(entry.problem, target);
  if (!product) {
    own.unknown = llvm::toString(product.takeError());
    return;
  }
  auto code = hashCode(makeRequest(*product, target, 0), chip->name, chip->gpu,
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

/// Takes these entries out of the file, in which there may be more than when it
/// was read.
static llvm::Error prune(StringRef path, ArrayRef<llvm::json::Value> faults) {
  auto file = DatabaseFile::open(path);
  if (!file)
    return file.takeError();
  TuningDatabase now, kept;
  if (llvm::Error error = now.read(path))
    return error;
  for (const TunedEntry *entry : now.getEntries())
    if (!llvm::is_contained(faults, llvm::json::Value(toJSON(*entry))))
      kept.add(*entry);
  return file->replace(kept);
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

  std::vector<llvm::json::Value> faults;
  size_t unknown = 0;
  for (const Verified &own : all) {
    unknown += !own.unknown.empty();
    if (own.fault.empty())
      continue;
    print(own, own.fault);
    faults.emplace_back(toJSON(*own.entry));
  }
  llvm::outs() << llvm::formatv(
      "{0} entries: {1} as they were measured, {2} not, {3} of which this "
      "cannot be said\n",
      all.size(), all.size() - faults.size() - unknown, faults.size(), unknown);
  if (!options.prunes || faults.empty())
    return faults.empty();
  if (llvm::Error error = prune(options.search.database, faults))
    return std::move(error);
  llvm::outs() << faults.size() << " entries taken out\n";
  return true;
}
