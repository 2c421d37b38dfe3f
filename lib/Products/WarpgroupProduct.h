//===- WarpgroupProduct.h - products of warpgroups as PTX -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nvvm dialect has products of two dense matrices in shared memory, and no
// others.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WARPGROUPPRODUCT_H
#define NM_SPARSE_LIB_PRODUCTS_WARPGROUPPRODUCT_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// Emits `instruction`, of the family wgmma.mma_async, which adds to `acc`.
/// `operands` follow it, several registers of one in braces, then `flags` as
/// they are, in which `p` says that there is something to add to. Returns the
/// new accumulators.
SmallVector<Value> emitWarpgroupProduct(OpBuilder &b, Location loc,
                                        StringRef instruction, ValueRange acc,
                                        ArrayRef<SmallVector<Value>> operands,
                                        StringRef flags);

/// The wishes of all products of warpgroups.
ThreadUse getWarpgroupUse();

/// Products of warpgroups read shared memory through the async proxy: makes
/// seen there what threads have copied.
void emitAsyncProxyFence(OpBuilder &b, Location loc);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WARPGROUPPRODUCT_H
