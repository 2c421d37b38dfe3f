//===- EmulationReport.cpp - what the emulator counted --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/EmulationReport.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::reportEmulation(const EmulatorUse &use, RunReport &report) {
  llvm::json::Object json{
      {"launches", use.launches}, {"ctas", use.ctas}, {"seconds", use.seconds}};
  report.text += llvm::formatv("  emulated {0} CTA{1} in {2:f2} s\n", use.ctas,
                               use.ctas == 1 ? "" : "s", use.seconds);
  llvm::json::Object kernels;
  for (const auto &[kernel, operations] : use.banks) {
    report.text += "  banks of shared memory, @" + kernel + "\n";
    llvm::json::Object counts;
    for (const auto &[operation, banks] : operations) {
      counts[operation] = llvm::json::Object{{"accesses", banks.accesses},
                                             {"wavefronts", banks.wavefronts},
                                             {"conflicts", banks.conflicts}};
      report.text += llvm::formatv(
          "    {0,-9}  {1} accesses of warps, {2} wavefronts, {3} of them for "
          "conflicts\n",
          operation, banks.accesses, banks.wavefronts, banks.conflicts);
    }
    kernels[kernel] = std::move(counts);
  }
  if (!kernels.empty())
    json["bank_conflicts"] = std::move(kernels);
  report.json["emulated"] = std::move(json);
}
