//===- Memory.h - what a run needs and what there is ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_MEMORY_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_MEMORY_H

#include "Inputs/Extents.h"
#include "nm_sparse/Execution/Request/RunRequest.h"

namespace mlir::nm_sparse {

/// Refuses a run of `entry` on `device` whose arguments and results, with the
/// copies that a run makes of them, do not fit into the memory of this machine
/// or of its GPU. What fits may still fail later: the program may need more.
llvm::Error checkMemory(func::FuncOp entry, const Extents &extents,
                        Device device, bool checks);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_MEMORY_H
