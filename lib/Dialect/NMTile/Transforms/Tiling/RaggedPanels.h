//===- RaggedPanels.h - tiles of panels with rows of their own --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_RAGGEDPANELS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_RAGGEDPANELS_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir {
class RewriterBase;
namespace scf {
class ForallOp;
} // namespace scf

namespace nm_sparse {

/// Puts the product of a tile of one ragged panel into a loop over its rows:
///
///   y = matmul(x, v, i, init) panels(p)  ->
///   y = k_loop r = 0 to rows(p) step T iter_args(acc = init) {
///     yield matmul(x, v[first(p) + r], i[first(p) + r], acc) first_row(r) }
void tileRaggedRows(RewriterBase &rewriter, MatmulOp op);

/// Lets the CTA tiles of `forall`, in which are those of `whole`, have the
/// panels with the most rows first: the last wave is of short ones.
void orderRaggedPanels(RewriterBase &rewriter, scf::ForallOp forall,
                       MatmulOp whole);

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_RAGGEDPANELS_H
