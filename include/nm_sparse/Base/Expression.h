//===- Expression.h - Numbers that depend on sizes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expressions of docs/Manifest.md: integers, `arg0.size[1]` and the like,
// `+`, `*`, and functions such as `ceildiv(a, b)`. The compiler writes them,
// the runtime reads and computes them; both know the grammar from here.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_EXPRESSION_H
#define NM_SPARSE_BASE_EXPRESSION_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace nms {

/// A quantity that an expression refers to: a number about the argument or the
/// buffer called `name`.
struct Quantity {
  enum class Field { Value, Offset, Size, Stride };

  /// "arg0.size[1]"
  std::string write() const;

  std::string name;
  Field field = Field::Value;
  int64_t dim = 0;
};

/// The functions of expressions. Min and Max take two operands or more, the
/// others two.
enum class Function { Add, Sub, Mul, CeilDiv, FloorDiv, Mod, Min, Max };

/// "ceildiv(a, b)", of operands that are expressions.
std::string writeCall(Function function,
                      const std::vector<std::string> &operands);

/// "(a + b)" and "(a * b)", of operands that are expressions.
std::string writeSum(const std::string &a, const std::string &b);
std::string writeProduct(const std::string &a, const std::string &b);

/// Gives the value of a quantity; false, with the reason recorded, where there
/// is none.
using QuantityReader = std::function<bool(const Quantity &, int64_t &)>;

/// Gives what stands for the parts of an expression in another language.
struct ExpressionWriter {
  std::function<std::string(int64_t)> number;
  std::function<std::string(const Quantity &)> quantity;
  /// Takes two operands.
  std::function<std::string(Function, const std::string &, const std::string &)>
      call;
};

class Expression {
public:
  /// False, with the reason recorded, when `text` is no expression.
  static bool parse(std::string_view text, Expression &result);

  /// False, with the reason recorded, for a division by zero or a quantity that
  /// `read` does not know.
  bool evaluate(const QuantityReader &read, int64_t &value) const;

  /// Returns the text that `writer` gives; operands are written first.
  std::string write(const ExpressionWriter &writer) const;

  /// The quantities that it depends on.
  const std::vector<Quantity> &getQuantities() const { return quantities; }

  /// Gives the number when the expression is a number and nothing else.
  bool isNumber(int64_t &value) const;

  const std::string &getText() const { return text; }

private:
  struct Node {
    enum class Kind { Number, Quantity, Function };
    Kind kind;
    int64_t number;    ///< Or that of a quantity.
    Function function; ///< Takes two operands, the nodes before it.
  };
  friend class ExpressionParser;

  std::string text;
  std::vector<Node> nodes; ///< Operands before the function that takes them.
  std::vector<Quantity> quantities;
};

} // namespace nms

#endif // NM_SPARSE_BASE_EXPRESSION_H
