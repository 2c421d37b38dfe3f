//===- PatchesFields.h - text of #nm_sparse.patches -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PATCHESFIELDS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PATCHESFIELDS_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nm_sparse {

/// `kernel = [R, S]`, and the other fields where they are not the defaults:
/// strides and dilations of 1, no zeros around the image, "chwb" and "crs".
ParseResult parsePatchesFields(AsmParser &parser, SmallVector<int64_t> &kernel,
                               SmallVector<int64_t> &strides,
                               SmallVector<int64_t> &dilations,
                               SmallVector<int64_t> &low,
                               SmallVector<int64_t> &high, std::string &image,
                               std::string &rows);
void printPatchesFields(AsmPrinter &printer, ArrayRef<int64_t> kernel,
                        ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                        ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                        StringRef image, StringRef rows);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_PATCHESFIELDS_H
