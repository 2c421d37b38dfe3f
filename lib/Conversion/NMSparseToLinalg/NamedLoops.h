//===- NamedLoops.h - reshapes and linalg.generic by letters ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_NAMEDLOOPS_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_NAMEDLOOPS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::nm_sparse {

/// Loops that are named by letters, as in an Einstein sum. A letter without an
/// extent is skipped wherever it is named, so that one text serves weights with
/// and without a batch, or with blocks of one row and of several.
class NamedLoops {
public:
  /// A tensor, and the loop that indexes each of its dimensions.
  struct Read {
    Value tensor;
    StringRef letters;
  };
  /// Builds the element that an iteration yields, of the elements that it reads
  /// and, last, the one that the result has so far. `at` is the index of a
  /// loop.
  using Body = function_ref<Value(ImplicitLocOpBuilder &b, ValueRange elements,
                                  function_ref<Value(char)> at)>;

  NamedLoops(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void set(char loop, int64_t extent) { extents[loop] = extent; }
  int64_t get(char loop) const { return extents.lookup(loop); }

  /// `tensor`, each dimension of which becomes the loops that one of `dims`
  /// names. An entry without loops stands for no dimension.
  Value split(Value tensor, ArrayRef<StringRef> dims) const;
  /// The inverse of `split`.
  Value join(Value tensor, ArrayRef<StringRef> dims) const;
  /// A linalg.generic over `loops`, whose result has the dimensions `result`
  /// and elements of type `element`. The other loops are reductions, which
  /// begin with zeros.
  Value build(StringRef loops, ArrayRef<Read> reads, StringRef result,
              Type element, Body body) const;

private:
  std::string filter(StringRef letters) const;
  SmallVector<int64_t> getShape(StringRef letters) const;
  /// Reshapes between the loops and the dimensions that `dims` name.
  Value reshape(Value tensor, ArrayRef<StringRef> dims, bool isSplit) const;

  OpBuilder &b;
  Location loc;
  DenseMap<char, int64_t> extents;
};

/// The leading part of `tensor` that has `sizes`.
Value takeLeading(OpBuilder &b, Location loc, Value tensor,
                  ArrayRef<int64_t> sizes);

/// `tensor` with `count` more zeros at the end of its first dimension.
Value appendZeros(OpBuilder &b, Location loc, Value tensor, int64_t count);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_NAMEDLOOPS_H
