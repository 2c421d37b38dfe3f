//===- ExtentSolver.h - find extents from what is known of them -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every dimension of every tensor of a function, and every index, is a number
// to find. Some are known, some are one number, and some are products of
// others. What is known is propagated; then one that nothing determines is
// given the free size, and so on.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTSOLVER_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTSOLVER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/IntEqClasses.h"
#include <optional>
#include <string>

namespace mlir::nm_sparse {

class ExtentSolver {
public:
  /// In place of a dimension: the integer itself, or the weight that is packed
  /// in a tensor.
  static constexpr int64_t kItself = -1, kWeight = -2;

  /// The number of dimension `dim` of the tensor `value`.
  unsigned get(Value value, int64_t dim);
  /// The number that the integer `value` is.
  unsigned get(Value value) { return get(value, kItself); }

  void equate(unsigned a, unsigned b);
  /// Because dimension `dim` of `source` is `value`.
  void determine(unsigned number, int64_t value, Value source, int64_t dim);
  /// `whole` is `factor` times the product of `parts`.
  void addProduct(unsigned whole, int64_t factor, ArrayRef<unsigned> parts);
  /// `number` is one that the caller has to know, and may choose.
  void choose(unsigned number);

  /// Finds all that were to be chosen. Those that nothing determines become
  /// `freeSize`, in the order of `choose`.
  void solve(int64_t freeSize);
  std::optional<int64_t> find(unsigned number) const;
  /// Which two extents must be one and are not; empty when there are none.
  StringRef getError() const { return error; }

private:
  struct Origin {
    Value value; ///< Null: the free size.
    int64_t dim;
  };
  struct Fact {
    int64_t value;
    Origin source;
  };
  struct Rule {
    unsigned whole;
    int64_t factor;
    SmallVector<unsigned> parts;
  };
  void determine(unsigned number, Fact fact);
  void propagate();
  bool apply(const Rule &rule);
  bool followsFromOthers(unsigned number) const;
  std::string describe(const Origin &origin) const;
  std::string describe(const Fact &fact) const;
  std::string describe(unsigned number) const;
  void fail(std::string text) {
    if (error.empty())
      error = std::move(text);
  }

  SmallVector<Origin> origins; ///< The origin of each number.
  DenseMap<std::pair<Value, int64_t>, unsigned> ids;
  llvm::IntEqClasses classes;
  DenseMap<unsigned, Fact> facts;      ///< By leader of the class.
  DenseMap<unsigned, unsigned> chosen; ///< By leader, for messages, too.
  SmallVector<Rule> rules;
  SmallVector<unsigned> wanted;
  std::string error;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTSOLVER_H
