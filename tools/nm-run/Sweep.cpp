//===- Sweep.cpp - time against the number of tokens ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "nm_sparse/Runtime/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Some 50 numbers from `first` to `last`, as far apart on a scale of
/// logarithms, without regard to the sizes of tiles.
static SmallVector<int64_t> getSteps(int64_t first, int64_t last) {
  constexpr int count = 50;
  SmallVector<int64_t> steps;
  for (int i = 0; i < count; ++i) {
    double share = double(i) / (count - 1);
    auto step = int64_t(std::llround(
        double(first) * std::pow(double(last) / double(first), share)));
    if (steps.empty() || steps.back() != step)
      steps.push_back(step);
  }
  return steps;
}

/// One line of the table: the times, and a mark for each tenth of the speedup.
static void printRow(const llvm::json::Object &report, llvm::raw_ostream &os) {
  os << llvm::formatv("{0,7}", report.getInteger("size").value_or(0));
  const llvm::json::Object *time = report.getObject("time");
  if (!time) {
    os << "  " << report.getString("error").value_or("the check failed")
       << "\n";
    return;
  }
  os << llvm::formatv(" {0,9:f1}", time->getNumber("median_us").value_or(0));
  std::optional<double> speedup = report.getNumber("speedup");
  if (speedup)
    os << llvm::formatv(
        " {0,9:f1} {1,6:f2}  {2,-30}",
        report.getNumber("cublas_us").value_or(0), *speedup,
        std::string(size_t(std::min(30.0, *speedup * 10)), '='));
  else
    os << std::string(49, ' ');
  std::string kernels;
  if (const llvm::json::Array *names = report.getArray("kernels"))
    for (const llvm::json::Value &name : *names)
      kernels +=
          (kernels.empty() ? "" : ", ") + name.getAsString().value_or("").str();
  os << "  " << kernels << "\n";
}

/// Returns true if there is a GPU. A process of its own asks, since one that
/// uses CUDA cannot start others that do.
static bool hasDevice() {
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0)
    _exit(nmsDeviceAvailable() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int nm_sparse::runSweep(const RunOptions &options, llvm::json::Object header) {
  Device device = options.request.device;
  if ((device != Device::Auto && device != Device::CUDA) || !hasDevice()) {
    llvm::errs() << "nm-run: --sweep-tokens times kernels on a GPU, and this "
                    "run is not on one: use --device cuda where there is one\n";
    return 1;
  }
  std::vector<RunOptions> runs;
  std::vector<std::string> texts;
  for (int64_t tokens : getSteps(options.sweep->first, options.sweep->second)) {
    RunOptions run = options;
    run.request.bench = true;
    run.request.dynamicSize = tokens;
    if (!run.request.tokens)
      run.request.tokens.emplace();
    texts.push_back(
        llvm::formatv("{0} --size m={1}", run.request.file, tokens).str());
    runs.push_back(std::move(run));
  }
  PoolResults pool = runPool(options, std::move(runs), std::move(texts));
  llvm::outs() << " tokens        us    cuBLAS speedup"
               << "  a mark for each tenth           kernels\n";
  for (const llvm::json::Value &report : pool.reports)
    printRow(*report.getAsObject(), llvm::outs());
  return finishPool(options, std::move(header), std::move(pool));
}
