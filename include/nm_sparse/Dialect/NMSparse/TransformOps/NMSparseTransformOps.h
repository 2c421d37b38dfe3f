//===- NMSparseTransformOps.h - transform.nm_sparse.* -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations by which a script of the transform dialect packs weights and says
// how their products are lowered. Upstream's
// transform.structured.tile_using_for and tile_using_forall tile the products.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_H
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/IR/OpImplementation.h"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.h.inc"

namespace mlir::nm_sparse {

/// Adds the operations above to the transform dialect.
void registerTransformDialectExtension(DialectRegistry &registry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_H
