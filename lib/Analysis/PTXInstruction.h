//===- PTXInstruction.h - what one PTX instruction does ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_ANALYSIS_PTXINSTRUCTION_H
#define NM_SPARSE_LIB_ANALYSIS_PTXINSTRUCTION_H

#include "nm_sparse/Analysis/PTXFeatures.h"

namespace mlir::nm_sparse {

/// Counts one instruction: its opcode with all modifiers, as
/// `ld.global.v4.b32`, and the text of its operands.
PTXCounts countInstruction(llvm::StringRef opcode, llvm::StringRef operands);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_ANALYSIS_PTXINSTRUCTION_H
