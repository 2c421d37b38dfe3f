//===- LaunchAccesses.h - what launches read and write ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_LAUNCHACCESSES_H
#define NM_SPARSE_GPU_LAUNCHACCESSES_H

#include "mlir/Analysis/AliasAnalysis.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::nm_sparse {

/// The buffers that an operation uses.
struct Accesses {
  SmallVector<Value> read, written;
};

/// The buffers that `op`, a launch or not, uses; none if it may use any.
std::optional<Accesses> getAccesses(Operation *op,
                                    SymbolTableCollection &symbols);

/// Returns true if the order of the two matters.
bool dependOnOrder(const Accesses &a, const Accesses &b,
                   AliasAnalysis &aliases);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_LAUNCHACCESSES_H
