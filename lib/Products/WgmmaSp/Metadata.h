//===- Metadata.h - which of four rows a value belongs to -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMASP_METADATA_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMASP_METADATA_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Makes the metadata of sparse products of 16-bit elements of the bits of a
/// tile of the weight: four bits for each four rows of an output, the number of
/// the row of the first value, and of the second. A product of 64 outputs and
/// 32 rows has the words of two of the four lanes that share an output, which
/// its selector names: lanes 0 and 1 of a group of four those of even tiles,
/// lanes 2 and 3 those of odd ones (PTX ISA, sparse `wgmma.mma_async`).
class Metadata {
public:
  /// `output`: the first of the warp's own 16 in the CTA's tile.
  Metadata(OpBuilder &b, TileMatmulOp op, Value lane, Value output);

  /// The word of this lane for the products of `tilePair` and the one behind
  /// it, and of the 64 outputs that begin `output` further.
  Value get(int64_t tilePair, int64_t output);

private:
  Value combine(Value bits);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  int64_t tiles;
  Value bits, selector;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMASP_METADATA_H
