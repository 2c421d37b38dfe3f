//===- Programs.h - which operations make a program -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_PROGRAMS_H
#define NM_SPARSE_LIB_HOSTS_PROGRAMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Returns true if `op` sums over products with an encoded weight.
bool isEncodedProduct(linalg::LinalgOp op);

/// Returns true if the compiler fuses elementwise operations with `product`: it
/// adds the dimension of tokens to one without, and they lie behind that.
bool hasTokens(linalg::LinalgOp product);

/// Checks that the encoded weights in `function` are arguments of it that only
/// products and calls use, and that the front door takes the products.
LogicalResult checkWeights(func::FuncOp function);

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// For each result of a call of a program: the tensor that it is written to.
using Destinations = llvm::DenseMap<Value, Value>;

/// A size that is not a constant: dimension `dim` of the tensor `base`, or the
/// index `base` itself.
struct Size {
  Value base;
  std::optional<int64_t> dim;

  bool operator==(const Size &other) const {
    return base == other.base && dim == other.dim;
  }
};

/// Where the size of dimension `dim` of `tensor`, which is dynamic, comes from.
Size findSize(Value tensor, int64_t dim, const Destinations &destinations);

/// Where the index `size` comes from.
Size findSize(Value size, const Destinations &destinations);

//===----------------------------------------------------------------------===//
// Values that a program computes again
//===----------------------------------------------------------------------===//

/// The value that `value` is another view of, if a program can have that view
/// inside: a reshape, a cast without encodings, or the zeros around the image
/// of convolutions. Null for anything else.
Value getViewSource(Value value);

/// `value` before any views.
Value skipViews(Value value);

/// The source of `value`, if it is one of the views that a program takes with
/// it rather than getting their result: what rearranges a weight, zeros around
/// an image, and tokens collapsed of batch and sequence. Null for anything
/// else.
Value getPulledSource(Value value);

/// Returns true if `operand` of an elementwise operation is a broadcast that
/// the operation can read the input of.
bool isFusedBroadcast(OpOperand &operand);

/// `a + b`, written to `output`.
Value createSum(OpBuilder &builder, Location loc, Value a, Value b,
                Value output);

/// The constant that each element of `init` has, if it is a fill or a constant.
TypedAttr getFillValue(Value init);

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// A product and what is computed in its kernel.
struct Unit {
  linalg::LinalgOp product;
  /// Makes the initial sum, if it is an elementwise operation for it alone.
  Operation *init = nullptr;
  /// The elementwise operations behind it, each the only user of what is before
  /// it, and reshapes between them.
  SmallVector<Operation *> epilogue;
};

/// The units of `block`, in order. No operation is in two.
SmallVector<Unit> collectUnits(Block &block);

/// The linalg operations of a program, in the order of their block.
using Group = SmallVector<linalg::LinalgOp>;

/// The groups of products in `block`: no path leads from one through an
/// operation outside back into it, nor from one to another and back. Reorders
/// `block` so that nothing but views of its results lies between the operations
/// of a group.
SmallVector<Group> findGroups(Block &block);

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A function that computes a group.
struct Program {
  func::FuncOp function;
  /// The values of the model that the first arguments are.
  SmallVector<Value> inputs;
  /// The values of the model that the results are. The last arguments are the
  /// tensors that these are written to.
  SmallVector<Value> results;
};

/// Builds the program of `group` at the insertion point. The model stays as it
/// is.
Program buildProgram(OpBuilder &builder, const Group &group, StringRef name,
                     const Destinations &destinations);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_PROGRAMS_H
