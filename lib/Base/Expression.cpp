//===- Expression.cpp - Numbers that depend on sizes ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Expression.h"

#include "nm_sparse/Base/Fail.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace nms {

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

struct NamedFunction {
  const char *name;
  Function function;
};

constexpr NamedFunction kFunctions[] = {
    {"add", Function::Add},           {"sub", Function::Sub},
    {"mul", Function::Mul},           {"ceildiv", Function::CeilDiv},
    {"floordiv", Function::FloorDiv}, {"mod", Function::Mod},
    {"min", Function::Min},           {"max", Function::Max}};

constexpr const char *kOffset = "offset", *kSize = "size", *kStride = "stride";

} // namespace

std::string Quantity::write() const {
  switch (field) {
  case Field::Value:
    break;
  case Field::Offset:
    return name + "." + kOffset;
  case Field::Size:
    return name + "." + kSize + "[" + std::to_string(dim) + "]";
  case Field::Stride:
    return name + "." + kStride + "[" + std::to_string(dim) + "]";
  }
  return name;
}

std::string writeCall(Function function,
                      const std::vector<std::string> &operands) {
  const auto *found = std::find_if(
      std::begin(kFunctions), std::end(kFunctions),
      [&](const NamedFunction &f) { return f.function == function; });
  std::string text = std::string(found->name) + "(";
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i ? ", " : "") + operands[i];
  return text + ")";
}

std::string writeSum(const std::string &a, const std::string &b) {
  return "(" + a + " + " + b + ")";
}

std::string writeProduct(const std::string &a, const std::string &b) {
  return "(" + a + " * " + b + ")";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// By recursive descent: sum = product {+ product}, product = factor {*
/// factor}.
class ExpressionParser {
public:
  ExpressionParser(std::string_view text, Expression &result)
      : text(text), result(result) {}

  bool parse() {
    if (!parseSum())
      return false;
    skipSpace();
    return at == text.size() || refuse("an operator");
  }

private:
  using Node = Expression::Node;
  // Deeper than what the compiler writes by far, and far from the stack's end.
  static constexpr int kMostNested = 200;

  bool refuse(const char *expected) {
    return !fail("'%.*s' is no expression: %s was expected at position %zu",
                 static_cast<int>(text.size()), text.data(), expected, at);
  }

  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }

  bool take(char c) {
    skipSpace();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  /// Applies `function` to the two operands before it.
  void call(Function function) {
    result.nodes.push_back({Node::Kind::Function, 0, function});
  }

  bool parseSum() {
    if (nested == kMostNested)
      return refuse("less nesting");
    ++nested;
    if (!parseProduct())
      return false;
    while (take('+')) {
      if (!parseProduct())
        return false;
      call(Function::Add);
    }
    --nested;
    return true;
  }

  bool parseProduct() {
    if (!parseFactor())
      return false;
    while (take('*')) {
      if (!parseFactor())
        return false;
      call(Function::Mul);
    }
    return true;
  }

  bool parseNumber(int64_t &number) {
    skipSpace();
    bool isNegative = at < text.size() && text[at] == '-';
    size_t begin = at + isNegative, end = begin;
    uint64_t magnitude = 0;
    constexpr uint64_t most = std::numeric_limits<int64_t>::max();
    for (; end < text.size() && isdigit(text[end]); ++end) {
      unsigned digit = text[end] - '0';
      if (magnitude > (most - digit) / 10)
        return refuse("a number of 64 bits");
      magnitude = 10 * magnitude + digit;
    }
    if (end == begin)
      return refuse("a number");
    at = end;
    number = isNegative ? -static_cast<int64_t>(magnitude)
                        : static_cast<int64_t>(magnitude);
    return true;
  }

  std::string_view parseName() {
    size_t begin = at;
    while (at < text.size() && (isalnum(text[at]) || text[at] == '_'))
      ++at;
    return text.substr(begin, at - begin);
  }

  bool parseFactor() {
    skipSpace();
    if (take('('))
      return parseSum() && (take(')') || refuse("')'"));
    if (at == text.size())
      return refuse("a value");
    if (text[at] == '-' || isdigit(text[at])) {
      int64_t number = 0;
      if (!parseNumber(number))
        return false;
      result.nodes.push_back({Node::Kind::Number, number, Function::Add});
      return true;
    }
    std::string_view name = parseName();
    if (name.empty())
      return refuse("a value");
    if (take('('))
      return parseCall(name);
    return parseQuantity(name);
  }

  bool parseCall(std::string_view name) {
    const auto *found =
        std::find_if(std::begin(kFunctions), std::end(kFunctions),
                     [&](const NamedFunction &f) { return name == f.name; });
    if (found == std::end(kFunctions))
      return refuse("a function that is known");
    if (!parseSum())
      return false;
    Function function = found->function;
    bool takesMore = function == Function::Min || function == Function::Max;
    int operands = 1;
    for (; take(','); ++operands) {
      if (!parseSum())
        return false;
      call(function);
    }
    if (operands < 2 || (operands > 2 && !takesMore))
      return refuse("two operands");
    return take(')') || refuse("')'");
  }

  bool parseQuantity(std::string_view name) {
    Quantity quantity;
    quantity.name = std::string(name);
    if (at < text.size() && text[at] == '.') {
      ++at;
      std::string_view field = parseName();
      quantity.field = field == kSize     ? Quantity::Field::Size
                       : field == kStride ? Quantity::Field::Stride
                                          : Quantity::Field::Offset;
      if (quantity.field == Quantity::Field::Offset) {
        if (field != kOffset)
          return refuse("size, stride or offset");
      } else if (!take('[') || !parseNumber(quantity.dim) || !take(']')) {
        return refuse("the number of a dimension in brackets");
      }
    }
    result.nodes.push_back({Node::Kind::Quantity,
                            static_cast<int64_t>(result.quantities.size()),
                            Function::Add});
    result.quantities.push_back(std::move(quantity));
    return true;
  }

  std::string_view text;
  Expression &result;
  size_t at = 0;
  int nested = 0;
};

bool Expression::parse(std::string_view text, Expression &result) {
  result = Expression();
  result.text = std::string(text);
  return ExpressionParser(text, result).parse();
}

bool Expression::isNumber(int64_t &value) const {
  if (nodes.size() != 1 || nodes.front().kind != Node::Kind::Number)
    return false;
  value = nodes.front().number;
  return true;
}

std::string Expression::write(const ExpressionWriter &writer) const {
  std::vector<std::string> stack;
  for (const Node &node : nodes) {
    if (node.kind == Node::Kind::Number) {
      stack.push_back(writer.number(node.number));
    } else if (node.kind == Node::Kind::Quantity) {
      stack.push_back(writer.quantity(quantities[node.number]));
    } else {
      std::string b = std::move(stack.back());
      stack.pop_back();
      stack.back() = writer.call(node.function, stack.back(), b);
    }
  }
  return stack.back();
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

static bool apply(Function function, int64_t a, int64_t b, int64_t &value) {
  bool divides = function == Function::CeilDiv ||
                 function == Function::FloorDiv || function == Function::Mod;
  // Sizes are not negative, and the compiler divides by positive numbers.
  if (divides && b <= 0)
    return !fail("a division by %lld", ll(b));
  int64_t quotient = divides ? a / b : 0, rest = divides ? a % b : 0;
  switch (function) {
  case Function::Add:
    return !__builtin_add_overflow(a, b, &value) || !fail("a sum is too large");
  case Function::Sub:
    return !__builtin_sub_overflow(a, b, &value) ||
           !fail("a difference is too large");
  case Function::Mul:
    return !__builtin_mul_overflow(a, b, &value) ||
           !fail("a product is too large");
  case Function::CeilDiv:
    value = quotient + (rest > 0);
    return true;
  case Function::FloorDiv:
    value = quotient - (rest < 0);
    return true;
  case Function::Mod:
    value = rest < 0 ? rest + b : rest;
    return true;
  case Function::Min:
    value = std::min(a, b);
    return true;
  case Function::Max:
    value = std::max(a, b);
    return true;
  }
  return false;
}

bool Expression::evaluate(const QuantityReader &read, int64_t &value) const {
  std::vector<int64_t> stack;
  for (const Node &node : nodes) {
    if (node.kind == Node::Kind::Number) {
      stack.push_back(node.number);
      continue;
    }
    if (node.kind == Node::Kind::Quantity) {
      stack.push_back(0);
      if (!read(quantities[node.number], stack.back()))
        return false;
      continue;
    }
    int64_t b = stack.back();
    stack.pop_back();
    if (!apply(node.function, stack.back(), b, stack.back()))
      return !fail("'%s' cannot be computed: %s", text.c_str(),
                   std::string(nmsLastError()).c_str());
  }
  value = stack.back();
  return true;
}

} // namespace nms
