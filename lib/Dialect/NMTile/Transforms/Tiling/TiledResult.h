//===- TiledResult.h - results that products write tile by tile -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_TILEDRESULT_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_TILEDRESULT_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::nm_sparse {

/// Returns true if `use` is a tile that an epilogue of a product reads as a
/// vector.
bool isReadByTiles(OpOperand &use);

/// A result of a product that is written tile by tile.
struct TiledResult {
  scf::ForallOp forall;
  /// The tensor that the tiles are written to, outside and inside of `forall`.
  OpOperand *init = nullptr;
  BlockArgument tile;
};

/// The tiles of `result`, which `reader` alone reads, and which are written
/// from vectors; none for other values.
std::optional<TiledResult> findTiledResult(Value result, Operation *reader);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_TILEDRESULT_H
