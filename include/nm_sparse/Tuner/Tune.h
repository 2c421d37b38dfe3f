//===- Tune.h - the search for the fastest schedules ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each product, the schedules that the cost model finds best and the
// neighbours of the one that is measured to be best; what wins becomes a line
// of a tuning database (docs/Tuning.md).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNER_TUNE_H
#define NM_SPARSE_TUNER_TUNE_H

#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Execution/CompareSchedules.h"
#include "nm_sparse/Tuner/Tunables.h"
#include <functional>

namespace mlir::nm_sparse {

/// Compiles and measures schedules of one product; see `ScheduleComparison`.
/// After an error, `answers` says if the device still does.
class ProductMeter {
public:
  virtual ~ProductMeter() = default;
  virtual void add(ArrayRef<std::string> schedules) = 0;
  virtual llvm::Error check() = 0;
  virtual llvm::Error time(ArrayRef<size_t> which) = 0;
  virtual llvm::Error measureEnergy(ArrayRef<size_t> which) = 0;
  virtual bool answers() const = 0;
  virtual ArrayRef<ComparedSchedule> getSchedules() const = 0;
  virtual double getDenseUs() const = 0;
  virtual double getDenseMillijoules() const = 0;
  /// Why dense products are not timed; empty where they are.
  virtual StringRef getDenseFault() const { return ""; }
};

using MakeMeter = std::function<llvm::Expected<std::unique_ptr<ProductMeter>>(
    const TunableProduct &)>;

struct TuneOptions {
  std::string database;    ///< A file of lines of JSON; made if there is none.
  int64_t candidates = 12; ///< To measure first, at most.
  int64_t neighbours = 4;  ///< Of the best of them, to measure then.
  std::optional<double> minutes; ///< After which no product is begun.
  /// Only results are checked: no times are taken, nothing is written.
  bool checksOnly = false;
  std::string compiler, driver; ///< Versions, for the entries.
};

/// Seconds of a search. Products are prepared and their first schedules
/// compiled while the one before is measured; schedules are compiled side by
/// side.
struct SearchTimes {
  double inputs = 0;  ///< To list schedules, and to make arguments.
  double compile = 0; ///< To compile the first schedules.
  double check = 0;   ///< To compare results, those of neighbours too.
  double measure = 0; ///< To compile neighbours, and to take times.
  double wait = 0;    ///< For what was not ready when the one before was done.
};

/// The result of the search for one product.
struct TunedProduct {
  const TunableProduct *product;
  TunedEntry entry;    ///< Without a schedule where results were only checked.
  size_t measured = 0; ///< Schedules with right results.
  std::vector<ComparedSchedule> wrong, refused; ///< Not compiled.
  /// Why there is no entry: no schedule is legal, none is right, or one could
  /// not be measured.
  std::string failure;
  std::string denseFault; ///< Why the dense product was not timed.
  SearchTimes seconds;
  /// The longest that a schedule took to compile and to load.
  double lowerSeconds = 0, loadSeconds = 0;
};

/// The products of `tunables` that `database` has no entry of.
std::vector<const TunableProduct *>
findUnknown(ArrayRef<TunableProduct> tunables, const TuningDatabase &database,
            Objective objective);

/// Tunes `products` one after another; the next one is compiled while one is
/// measured. `report` gets each as it is found, and returns true to go on.
/// Stops when time is up. An error is that the device answers no more, or one
/// of the database.
llvm::Error tune(ArrayRef<const TunableProduct *> products,
                 const TuneTarget &target, const TuneOptions &options,
                 const MakeMeter &makeMeter,
                 llvm::function_ref<bool(const TunedProduct &)> report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNER_TUNE_H
