//===- ProgramBuilder.h - copies a group into a function --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_PROGRAMBUILDER_H
#define NM_SPARSE_LIB_HOSTS_PROGRAMBUILDER_H

#include "Programs.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {

/// Builds the program of one group. Its operations are the members.
class ProgramBuilder {
public:
  ProgramBuilder(OpBuilder &builder, const Group &group,
                 const Destinations &destinations)
      : builder(builder), group(group), destinations(destinations),
        members(group.begin(), group.end()) {}

  Program build(StringRef name);

private:
  bool isMember(Operation *op) const { return op && members.contains(op); }
  /// Returns true if the model needs `value` of the group.
  bool isUsedOutside(Value value) const;
  /// Returns true if `init` is computed in the group for one product alone, as
  /// its initial sum.
  bool isInitialSum(Value init) const;

  /// The value that the program makes `value` of by an operation that is no
  /// member; null if it is an argument or computed by a member.
  Value getSource(Value value) const;
  /// Adds arguments for what `value` is made of.
  void addInputs(Value value);
  Value getArgument(Value value);

  /// The values that `value` of the model is in the program.
  Value get(Value value);
  Value getExpanded(tensor::ExpandShapeOp op);
  Value getRearranged(Value value, ArrayRef<OpFoldResult> sizes);
  Value getOperand(OpOperand &operand);

  OpFoldResult getDim(Value tensor, int64_t dim);
  /// The number of iterations of `loop`, by what the copy of `op` reads.
  OpFoldResult getLoopSize(linalg::LinalgOp op, unsigned loop);
  /// The sizes of a tensor of `type` that `op` indexes by `map`.
  SmallVector<OpFoldResult> getSizes(linalg::LinalgOp op, AffineMap map,
                                     ShapedType type);
  Value createEmpty(Location loc, ShapedType type,
                    ArrayRef<OpFoldResult> sizes);

  /// The argument that `value` is written to; null if it is none.
  Value getDestination(Value value) const;
  /// The tensor that the copy of `op` can write its result to.
  Value getOutput(linalg::LinalgOp op);
  Value createFill(linalg::LinalgOp product, Value output, TypedAttr value);
  /// Copies `op`, which writes to `init` or adds to it.
  Value copy(linalg::LinalgOp op, Value init);
  void copyMember(linalg::LinalgOp op);
  void copyProduct(linalg::LinalgOp op);

  OpBuilder &builder;
  const Group &group;
  const Destinations &destinations;
  llvm::SmallPtrSet<Operation *, 16> members;
  Block *body = nullptr;
  IRMapping mapping;
  SetVector<Value> inputs;
  llvm::MapVector<Value, BlockArgument> outputs;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_PROGRAMBUILDER_H
