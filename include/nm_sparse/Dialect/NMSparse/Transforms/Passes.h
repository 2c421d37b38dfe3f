//===- Passes.h - registration of the nm_sparse transformations -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_H
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::nm_sparse {

#define GEN_PASS_DECL
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_H
