//===- Expression.h - numbers that depend on sizes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expressions of docs/Manifest.md: integers, `arg0.size[1]` and the like,
// `+`, `*`, and functions such as `ceildiv(a, b)`.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_EXPRESSION_H
#define NM_SPARSE_LIB_RUNTIME_EXPRESSION_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace nms {

/// What an expression refers to: a number about the argument or the buffer
/// called `name`.
struct Quantity {
  enum class Field { Value, Offset, Size, Stride };
  std::string name;
  Field field = Field::Value;
  int64_t dim = 0;
};

/// Gives the value of a quantity; false, with the reason recorded, where there
/// is none.
using QuantityReader = std::function<bool(const Quantity &, int64_t &)>;

class Expression {
public:
  /// False, with the reason recorded, when `text` is no expression.
  static bool parse(std::string_view text, Expression &result);

  /// False, with the reason recorded, for a division by zero or a quantity that
  /// `read` does not know.
  bool evaluate(const QuantityReader &read, int64_t &value) const;

  const std::string &getText() const { return text; }

private:
  enum class Op {
    Number,
    Quantity,
    Add,
    Sub,
    Mul,
    CeilDiv,
    FloorDiv,
    Mod,
    Min,
    Max
  };
  struct Node {
    Op op;
    int64_t number; ///< Or the number of a quantity.
  };
  friend class ExpressionParser;
  static bool apply(Op op, int64_t a, int64_t b, int64_t &value);

  std::string text;
  std::vector<Node> nodes; ///< Operands before what takes them.
  std::vector<Quantity> quantities;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_EXPRESSION_H
