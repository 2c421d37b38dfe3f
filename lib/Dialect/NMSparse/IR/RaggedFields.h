//===- RaggedFields.h - text of #nm_sparse.ragged ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_RAGGEDFIELDS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_RAGGEDFIELDS_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nm_sparse {

/// `, rows = R` and `, density = D`, in any order; the defaults where they are
/// not given.
ParseResult parseRaggedFields(AsmParser &parser, int64_t &rows,
                              int64_t &density);

/// Both, where they are not the defaults of the attribute's definition.
void printRaggedFields(AsmPrinter &printer, int64_t rows, int64_t density);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_RAGGEDFIELDS_H
