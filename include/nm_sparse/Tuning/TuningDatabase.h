//===- TuningDatabase.h - schedules that were measured ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measurements are data: lines of JSON, one for each problem, with the fastest
// schedule, its time and that of the dense product (docs/Tuning.md).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNING_TUNINGDATABASE_H
#define NM_SPARSE_TUNING_TUNINGDATABASE_H

#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mlir::nm_sparse {

struct Chip;

/// A product whose time can be measured: all that the time of its kernel
/// depends on, but the schedule and the values.
struct TunedProblem {
  std::string gpu;      ///< Such as h200.
  std::string encoding; ///< As the weight's type has it.
  std::string storage;  ///< The attribute; canonical where there is none.
  std::string type;     ///< The activations and values, such as f16.
  std::string x, y;     ///< feature-major or token-major.
  /// The geometry and the image of a convolution; empty for other products.
  std::string patches;
  /// Bytes that the epilogue writes and reads for each element of the result.
  int64_t writtenBytes = 0, readBytes = 0;
  int64_t batch = 1, inputs = 0, outputs = 0;
  int64_t tokens = 0;

  /// The problem of `op` with so many tokens.
  static TunedProblem get(MatmulOp op, int64_t tokens, const Chip &chip);
  /// Equal for the problems of one layer: all but the tokens.
  std::string getLayer() const;
};

/// A problem and the best of the schedules that were measured for it.
struct TunedEntry {
  TunedProblem problem;
  Objective objective = Objective::Time; ///< What it is the best by.
  std::string schedule;                  ///< The text of a #nm_tile.schedule.
  double us = 0;      ///< Median time of the kernel, in microseconds.
  double spread = 0;  ///< The samples vary by this share of the median.
  double denseUs = 0; ///< The dense product takes this; 0: not measured.
  double modelUs = 0; ///< And the model's choice; 0: not measured.
  /// Energies of a call, as of the dense product; 0: not measured.
  double millijoules = 0, denseMillijoules = 0;
  std::string code;     ///< A number of the kernel's code; empty: not known.
  std::string compiler; ///< Version that made the kernel.
  std::string driver;   ///< Version that ran it.
};

/// The fields of a line that say the problem; with those of `TunedEntry` they
/// are a line.
llvm::json::Object toJSON(const TunedProblem &problem);
llvm::json::Object toJSON(const TunedEntry &entry);
bool fromJSON(const llvm::json::Value &value, TunedEntry &entry,
              llvm::json::Path path);

/// Measured schedules of many problems.
class TuningDatabase {
public:
  /// Adds the entries of a file. Of two entries for one problem, here or in
  /// another file, the one stays that is better by their objective. An error
  /// names the file and the line, and leaves the database as it was.
  ///
  /// With `sizes`, inputs and outputs, those of other sizes are passed over
  /// unread: a database may have many more layers than a program.
  using Sizes = std::set<std::pair<int64_t, int64_t>>;
  llvm::Error read(StringRef path, const Sizes *sizes = nullptr);

  void add(TunedEntry entry);

  /// The entry of the same layer whose number of tokens is nearest, at most
  /// twice or half as many; null where there is none. Entries by another
  /// objective are of no use.
  const TunedEntry *find(const TunedProblem &problem,
                         Objective objective = Objective::Time) const;
  /// The same for this number of tokens alone.
  const TunedEntry *findExact(const TunedProblem &problem,
                              Objective objective = Objective::Time) const;
  /// The numbers of tokens of entries with the encoding, elements, inputs and
  /// outputs of `problem`, ascending.
  std::set<int64_t> findTokens(const TunedProblem &problem,
                               Objective objective) const;
  /// All entries, those of one layer together and by tokens.
  std::vector<const TunedEntry *> getEntries() const;

  size_t size() const;
  /// Prints all entries, those of one layer together and by tokens.
  void print(llvm::raw_ostream &os) const;

private:
  std::map<std::string, std::map<int64_t, TunedEntry>> layers;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNING_TUNINGDATABASE_H
