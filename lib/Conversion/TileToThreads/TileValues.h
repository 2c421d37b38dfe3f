//===- TileValues.h - what the threads of a launch share --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEVALUES_H
#define NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEVALUES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::nm_sparse {

/// The vectors of a launch whose elements its threads share, as one
/// ThreadLayout says: the accumulators of products, or pieces of sums, with one
/// layout, what the
/// launch writes to memory outside of it, and all that is computed element by
/// element from the one or for the other. Another vector is a thread's own,
/// whatever its shape.
class TileValues {
public:
  /// Follows the definitions and uses of all tiles of `launch`, and returns
  /// those of `sum`, of others with its schedule and layout, and of none.
  /// Constants that they share with other code get a copy of their own. Fails,
  /// before any change, with an error on an operation whose threads could not
  /// keep to a layout.
  static FailureOr<TileValues> collect(gpu::LaunchOp launch,
                                       SumOpInterface sum);

  bool contains(Value value) const { return values.contains(value); }
  /// `op` takes or makes a tile.
  bool areOf(Operation *op) const;

  /// Clones `op`, whose tiles are copied as tiles.
  Operation *cloneOp(OpBuilder &b, Operation *op, IRMapping &map);
  void eraseOp(Operation *op);

private:
  llvm::DenseSet<Value> values;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEVALUES_H
