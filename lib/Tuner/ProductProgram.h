//===- ProductProgram.h - a product as a program of its own -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time of a kernel depends on how its product reads and writes, which is
// what a problem says: whatever program has it, the kernels are the same.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TUNER_PRODUCTPROGRAM_H
#define NM_SPARSE_LIB_TUNER_PRODUCTPROGRAM_H

#include "nm_sparse/Tuning/TuningDatabase.h"

namespace mlir::nm_sparse {

/// Why no program below has this problem; empty where one may.
std::string explainNoProgram(const TunedProblem &problem, MLIRContext &context);

/// Programs that may have this problem, most likely ones first: the compiler
/// may read activations the other way round than a program passes them.
SmallVector<std::string> writePrograms(const TunedProblem &problem,
                                       MLIRContext &context);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TUNER_PRODUCTPROGRAM_H
