//===- EmulationReport.h - what the emulator counted ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_REPORT_EMULATIONREPORT_H
#define NM_SPARSE_LIB_EXECUTION_REPORT_EMULATIONREPORT_H

#include "nm_sparse/Emulator/Emulator.h"
#include "nm_sparse/Execution/Request/RunReport.h"

namespace mlir::nm_sparse {

/// Adds launches, time and, where they were counted, conflicts of banks.
void reportEmulation(const EmulatorUse &use, RunReport &report);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_REPORT_EMULATIONREPORT_H
