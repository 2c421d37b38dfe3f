//===- PTXInstruction.h - what one PTX instruction does ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_ENERGY_PTXINSTRUCTION_H
#define NM_SPARSE_LIB_ENERGY_PTXINSTRUCTION_H

#include "nm_sparse/Energy/PTXFeatures.h"

namespace mlir::nm_sparse {

/// A name of PTX, from the start of `text`.
llvm::StringRef getName(llvm::StringRef text);

/// Counts one instruction: its opcode with all modifiers, as
/// `ld.global.v4.b32`, and the text of its operands.
PTXCounts countInstruction(llvm::StringRef opcode, llvm::StringRef operands);

/// Bytes of the variables of a declaration, as `.align 4 .b32 tile[64], sum`;
/// none of an array without a size.
llvm::Expected<int64_t> countDeclaredBytes(llvm::StringRef declaration);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_ENERGY_PTXINSTRUCTION_H
