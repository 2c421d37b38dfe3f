//===- Permutations.h - inputs that must be permutations --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_PERMUTATIONS_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_PERMUTATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Execution/Host/CompiledModule.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// The numbers of the arguments of `entry` that nm_sparse.permute reads as
/// permutations. Refuses constants that are none, and what the program
/// computes: no code checks that before it is used as addresses. Calls must
/// have been inlined.
llvm::Expected<llvm::DenseSet<unsigned>> findPermutations(func::FuncOp entry);

/// `count` random permutations of the numbers below `size`, one after another.
std::vector<uint32_t> drawPermutations(int64_t count, int64_t size,
                                       uint64_t seed);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_PERMUTATIONS_H
