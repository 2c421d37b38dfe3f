//===- Inputs.h - seeded inputs of a function -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_INPUTS_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_INPUTS_H

#include "Inputs/Extents.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Execution/Host/WeightCache.h"

namespace mlir::nm_sparse {

/// The arguments of one function, for both of its compiled forms.
struct Inputs {
  /// As the function declares them; weights are dense.
  std::vector<Argument> dense;
  /// As the function takes them after materialization: the components in place
  /// of each encoded weight.
  std::vector<Argument> packed;
};

/// `extents` are those of `function`. Weights of free elements keep `density`
/// percent of them. An argument that `whole`, which is `function` with calls
/// inlined, reads as a permutation holds one in each of its rows.
llvm::Expected<Inputs> makeInputs(func::FuncOp function, func::FuncOp whole,
                                  const Extents &extents, uint64_t seed,
                                  int64_t density, WeightCache *weights);

/// Refuses an argument of `entry` that products read as the index of a packed
/// weight, and that is not declared as that of such a weight: random numbers
/// are no positions. Calls must have been inlined.
llvm::Error checkIndexArguments(func::FuncOp entry);

/// `arguments` as a function of type `type` takes them: numbers are converted,
/// nothing is reshaped.
llvm::Expected<std::vector<Argument>>
convertArguments(ArrayRef<Argument> arguments, FunctionType type);

/// The results of `type`, which must be ranked tensors.
llvm::Expected<SmallVector<ResultType>> getResultTypes(FunctionType type);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_INPUTS_H
