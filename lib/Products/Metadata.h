//===- Metadata.h - which of four rows a value belongs to -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_METADATA_H
#define NM_SPARSE_LIB_PRODUCTS_METADATA_H

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Makes the metadata of sparse products of the bits of two tiles of the
/// weight, 64 rows: four bits for each four rows of an output, the number of
/// the row of the first value, and of the second. Of the four lanes that share
/// an output and the one 8 further, lanes 0 and 1 have words of the even tile,
/// lanes 2 and 3 of the odd one (PTX ISA, sparse `wgmma.mma_async` and `mma`).
///   - Of 16-bit elements, each tile is a product, whose selector names the
///     lanes, and a word has 16 rows of both outputs.
///   - Of 8-bit ones, both are one product, and a word has all rows of one
///     output: of the further one in odd lanes.
class Metadata {
public:
  /// `output`: the first of the warp's own 16 in the CTA's tile.
  Metadata(OpBuilder &b, TileMatmulOp op, Value lane, Value output);

  /// The word of this lane for the products of `tilePair` and the one behind
  /// it, and of the 16 outputs that begin `output` further, in the same place
  /// of another block or, where the first ones begin a block, in the same
  /// block.
  Value get(int64_t tilePair, int64_t output);

private:
  Value combine(Value bits);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  int64_t tiles;
  bool hasBytes;
  /// Where the bits of the lane's output begin or, of 16-bit elements, those of
  /// one of its outputs and of the other, and which halves of them it takes.
  Value first, second, selector;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_METADATA_H
