//===- MaterializeConstants.h - prune and pack constants --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFORMS_MATERIALIZECONSTANTS_H
#define NM_SPARSE_LIB_TRANSFORMS_MATERIALIZECONSTANTS_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"

namespace mlir::nm_sparse {

using PackedConstants = llvm::DenseMap<Operation *, PackedConstant>;

/// Replaces each prune of a constant by the pruned constant.
LogicalResult foldPrunes(ModuleOp module);

/// Packs every constant of encoded type, and the constant that a
/// `nm_sparse.pack` on plain types has, keyed by the constant or the pack.
/// Changes nothing.
LogicalResult packConstants(ModuleOp module, PackedConstants &packed);

/// The components of a constant as values of `types`, some of whose sizes may
/// be known from the data alone.
SmallVector<Value> buildConstants(OpBuilder &b, Location loc,
                                  const PackedConstant &data, TypeRange types);

/// Replaces packs of plain constants by what they packed to.
void foldPlainPacks(ModuleOp module, PackedConstants &packed);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFORMS_MATERIALIZECONSTANTS_H
