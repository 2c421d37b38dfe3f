//===- RingRoles.h - what producers and consumers of a ring run -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two K loops that --nm-sparse-specialize-warps makes of one, and what
// stands right before and behind them.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGROLES_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGROLES_H

#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// Emits the roles of one K loop, at the insertion point of the builder.
class RingRoles : protected IndexEmitter {
protected:
  /// The copies of a K loop, or what is left of it without them.
  enum class Role { Producer, Consumer };

  RingRoles(KLoopOp loop, TileMatmulOp product);

  /// Copies before the loop, which the threads of `role` then read.
  void emitResidentCopies(ArrayRef<Operation *> copies, Role role);
  /// The part of the K loop that `role` runs. It also carries the position in
  /// the ring.
  KLoopOp emitLoop(Role role);
  /// Waits for the last product, if there is one. Only the producers of a
  /// persistent CTA then fill its slot again.
  void emitDrain(KLoopOp consumerLoop);

  DenseI64ArrayAttr getThreads(Role role) {
    return role == Role::Producer
               ? b.getDenseI64ArrayAttr({consumers, producers})
               : b.getDenseI64ArrayAttr({0, consumers});
  }
  /// Those that make a copy in the K loop.
  DenseI64ArrayAttr getLoopThreads() {
    return turns > 1 ? b.getDenseI64ArrayAttr({consumers, 32, turns})
                     : getThreads(Role::Producer);
  }

  KLoopOp loop;
  TileMatmulOp product;
  int64_t stages, consumers, producers;
  int64_t turns; ///< Steps that producers copy at a time.
  Value ring;
  SmallVector<std::pair<memref::AllocOp, Value>> tileRings;
  /// Producers may fill a tile by ordinary stores.
  bool stores = false;

private:
  RingUse getUse() { return product.getSchedule().getRingUse(); }
  KLoopOp createLoop(Role role);
  void emitBody(Role role, KLoopOp split);
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_RINGROLES_H
