//===- Contraction.h - recognise linalg contractions ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes linalg operations that add a product of two operands to a third,
// and classifies their loops. Shared by the front door, which accepts such
// operations, and the reference, which replaces them. Also builds the one such
// operation of the oracle.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONTRACTION_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <string>

namespace mlir::nm_sparse {

/// On a product of the float64 reference: the number of the operand that is a
/// pruned weight. Discardable: without it, zeros of a weight are multiplied.
inline constexpr char kPrunedOperand[] = "pruned_operand";

/// The loops of `out += left * right`, by the operands that they index. Each
/// list is in increasing order.
struct Contraction {
  SmallVector<unsigned> batch;     ///< in left, right and out
  SmallVector<unsigned> left;      ///< in left and out
  SmallVector<unsigned> right;     ///< in right and out
  SmallVector<unsigned> reduction; ///< in left and right
};

/// Classifies the loops of `op`. Fails, with the reason in `reason`, unless
/// `op` has two inputs and one init, each indexed by a projected permutation,
/// and a body that adds their product to the init. Inputs may be extended
/// (`arith.extf`, `arith.extsi`) before they are multiplied.
FailureOr<Contraction> matchContraction(linalg::LinalgOp op,
                                        std::string &reason);

/// The same for operands that are read by `maps` rather than those of `op`.
FailureOr<Contraction> matchContraction(linalg::LinalgOp op,
                                        ArrayRef<AffineMap> maps,
                                        std::string &reason);

/// `a` and `b`, before exact extensions, of a body that yields `out + a * b`.
std::optional<std::pair<Value, Value>> getFactors(Block *body);

/// `init + x * weight` as a linalg.generic over `maps`, those of x, weight and
/// init. Sums are in f32, or i32 of integers, whatever the type of `init`,
/// which is that of the result.
Value buildProduct(OpBuilder &builder, Location loc, Value x, Value weight,
                   Value init, ArrayRef<AffineMap> maps,
                   ArrayRef<utils::IteratorType> iterators);

/// Position of `loop` among the results of `map`, if it is one.
std::optional<int64_t> getLoopPosition(AffineMap map, unsigned loop);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONTRACTION_H
