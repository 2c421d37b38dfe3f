//===- CompareSchedules.h - schedules of one program, measured --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of one product under several schedules: all get the same arguments,
// their results are compared with one reference, and their times are taken in
// turns with those of the dense product.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_COMPARESCHEDULES_H
#define NM_SPARSE_EXECUTION_COMPARESCHEDULES_H

#include "nm_sparse/Execution/Request/RunRequest.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace mlir::nm_sparse {

/// A schedule, and the result of running it.
struct ComparedSchedule {
  std::string schedule;
  /// Why it cannot be compiled or run, or how its result is wrong; empty: it is
  /// right.
  std::string problem;
  bool isWrong = false; ///< The result is.
  /// 16 digits that differ for kernels of other code, most likely.
  std::string code;
  double us = 0;     ///< Median time of a call, in microseconds; 0: not taken.
  double spread = 0; ///< The samples vary by this share of the median.
  double millijoules = 0; ///< Of a call; 0: not measured.
  /// How long the compiler took, and then the driver for the kernels and LLVM
  /// for the host's code.
  double lowerSeconds = 0, loadSeconds = 0;
};

/// The `code` of the program of `request` under `schedule`, compiled for a chip
/// by the rates of a GPU. Needs no device. An error says why it cannot be
/// compiled.
llvm::Expected<std::string> hashCode(const RunRequest &request, StringRef chip,
                                     StringRef gpu, StringRef schedule);

/// A program of one product, with arguments, under several schedules. All have
/// their results compared with one reference. The device is used by one thread
/// at a time.
class ScheduleComparison {
public:
  /// Opens the device that `request` means, and makes arguments for its
  /// program. Schedules are compiled by `jobs` threads.
  static llvm::Expected<std::unique_ptr<ScheduleComparison>>
  create(const RunRequest &request, unsigned jobs);
  ~ScheduleComparison();

  /// Compiles further schedules, which are set once layouts are chosen. May run
  /// in a thread of its own while another comparison uses the GPU.
  void add(ArrayRef<std::string> schedules);

  /// Runs each schedule once that was compiled since the last call, and checks
  /// its result. An error is that the device answers no more, or one of the
  /// reference.
  llvm::Error check();

  /// Takes the times of these schedules, in turns with the dense product, over
  /// some `budget` milliseconds. They were checked. Needs a GPU. An error is
  /// one of the device, such as that its memory does not suffice.
  llvm::Error time(ArrayRef<size_t> which, int64_t budget);

  /// Measures their energies, in `repeats` loops of some `seconds` for each. An
  /// error is one of the device, or that it has no counter of energy.
  llvm::Error measureEnergy(ArrayRef<size_t> which, double seconds,
                            int64_t repeats);

  /// Memory can be had on the device: no failure before was its end.
  bool answers() const;

  ArrayRef<ComparedSchedule> getSchedules() const;
  /// The time and the energy of the dense product, as they were measured last
  /// (microseconds, millijoules); 0 where they were not.
  double getDenseUs() const;
  /// Why the dense product was not timed; empty where it was.
  StringRef getDenseFault() const;
  double getDenseMillijoules() const;

private:
  ScheduleComparison();
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_COMPARESCHEDULES_H
