//===- ExtentSolver.cpp - find extents from what is known of them ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs/ExtentSolver.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string ExtentSolver::describe(const Origin &origin) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (origin.dim >= 0)
    stream << "dimension " << origin.dim << " of ";
  else if (origin.dim == kWeight)
    stream << "that of the weight packed in ";
  if (auto argument = dyn_cast<BlockArgument>(origin.value))
    stream << "argument #" << argument.getArgNumber();
  else
    stream << "a result of '" << origin.value.getDefiningOp()->getName() << "'";
  stream << " (" << origin.value.getType() << ")";
  return text;
}

std::string ExtentSolver::describe(const Fact &fact) const {
  return std::to_string(fact.value) + (fact.source.value ? "" : " (--size)");
}

/// An argument that is the same number says more to a user than a value inside.
std::string ExtentSolver::describe(unsigned number) const {
  unsigned leader = classes.findLeader(number);
  if (auto argument = chosen.find(leader); argument != chosen.end())
    return describe(origins[argument->second]);
  if (auto fact = facts.find(leader);
      fact != facts.end() && fact->second.source.value)
    return describe(fact->second.source);
  return describe(origins[number]);
}

//===----------------------------------------------------------------------===//
// Known extents
//===----------------------------------------------------------------------===//

unsigned ExtentSolver::get(Value value, int64_t dim) {
  auto [id, isNew] = ids.try_emplace({value, dim}, origins.size());
  unsigned number = id->second;
  if (!isNew)
    return number;
  origins.push_back({value, dim});
  classes.grow(origins.size());
  std::optional<int64_t> known;
  if (dim == kItself)
    known = getConstantIntValue(value);
  else if (auto type = cast<ShapedType>(value.getType());
           !type.isDynamicDim(dim))
    known = type.getDimSize(dim);
  if (known)
    determine(number, *known, value, dim);
  return number;
}

void ExtentSolver::determine(unsigned number, Fact fact) {
  auto [own, isNew] = facts.try_emplace(classes.findLeader(number), fact);
  if (isNew || own->second.value == fact.value)
    return;
  std::string subject = describe(number);
  std::string first = describe(own->second.source);
  std::string second = describe(fact.source);
  if (subject == first)
    fail(llvm::formatv("{0} is {1}, and must be equal to {2}, which is {3}",
                       first, own->second.value, second, fact.value));
  else
    fail(llvm::formatv("{0} must be equal to {1}, which is {2}, and to {3}, "
                       "which is {4}",
                       subject, first, own->second.value, second, fact.value));
}

void ExtentSolver::determine(unsigned number, int64_t value, Value source,
                             int64_t dim) {
  determine(number, Fact{value, {source, dim}});
}

void ExtentSolver::equate(unsigned a, unsigned b) {
  unsigned first = classes.findLeader(a), second = classes.findLeader(b);
  if (first == second)
    return;
  unsigned leader = classes.join(first, second);
  unsigned other = leader == first ? second : first;
  if (auto argument = chosen.find(other); argument != chosen.end())
    chosen.try_emplace(leader, argument->second);
  if (auto fact = facts.find(other); fact != facts.end())
    determine(leader, Fact(fact->second));
}

void ExtentSolver::addProduct(unsigned whole, int64_t factor,
                              ArrayRef<unsigned> parts) {
  if (factor == 1 && parts.size() == 1)
    equate(whole, parts.front());
  else
    rules.push_back({whole, factor, SmallVector<unsigned>(parts)});
}

void ExtentSolver::choose(unsigned number) {
  if (find(number))
    return;
  wanted.push_back(number);
  chosen.try_emplace(classes.findLeader(number), number);
}

std::optional<int64_t> ExtentSolver::find(unsigned number) const {
  auto fact = facts.find(classes.findLeader(number));
  return fact == facts.end() ? std::nullopt
                             : std::optional<int64_t>(fact->second.value);
}

//===----------------------------------------------------------------------===//
// Derived extents
//===----------------------------------------------------------------------===//

/// Determines the open extent of `rule`, if it has a single one. Returns true
/// if it did.
bool ExtentSolver::apply(const Rule &rule) {
  int64_t known = rule.factor;
  std::optional<unsigned> open;
  for (unsigned part : rule.parts) {
    std::optional<int64_t> value = find(part);
    if (!value && open)
      return false;
    if (!value) {
      open = part;
      continue;
    }
    std::optional<int64_t> product = llvm::checkedMul(known, *value);
    if (!product) {
      fail(
          llvm::formatv("{0} must be the product {1} x {2}, which is no 64-bit "
                        "number",
                        describe(rule.whole), known, *value));
      return false;
    }
    known = *product;
  }
  if (!open) {
    auto [fact, isNew] = facts.try_emplace(classes.findLeader(rule.whole),
                                           Fact{known, origins[rule.whole]});
    if (fact->second.value != known)
      fail(llvm::formatv("{0} is {1}, and must be {2}, the product of the "
                         "dimensions that it is reshaped from or to",
                         describe(rule.whole), describe(fact->second), known));
    return isNew;
  }
  // If a tensor is empty, its other dimensions are free.
  auto whole = facts.find(classes.findLeader(rule.whole));
  if (whole == facts.end() || known == 0)
    return false;
  int64_t value = whole->second.value;
  if (value % known != 0) {
    fail(llvm::formatv("{0} is {1}, and must be a multiple of {2}",
                       describe(rule.whole), describe(whole->second), known));
    return false;
  }
  facts.try_emplace(classes.findLeader(*open),
                    Fact{value / known, origins[*open]});
  return true;
}

void ExtentSolver::propagate() {
  bool changed = true;
  while (changed && error.empty()) {
    changed = false;
    for (const Rule &rule : rules)
      changed |= apply(rule);
  }
}

/// Returns true if numbers that will be chosen anyway determine this one.
bool ExtentSolver::followsFromOthers(unsigned number) const {
  unsigned leader = classes.findLeader(number);
  return llvm::any_of(rules, [&](const Rule &rule) {
    return classes.findLeader(rule.whole) == leader &&
           llvm::all_of(rule.parts, [&](unsigned part) {
             return find(part) || chosen.contains(classes.findLeader(part));
           });
  });
}

void ExtentSolver::solve(int64_t freeSize) {
  propagate();
  while (error.empty()) {
    auto isOpen = [&](unsigned number) { return !find(number); };
    auto open = llvm::make_filter_range(wanted, isOpen);
    if (open.empty())
      return;
    auto next = llvm::find_if(
        open, [&](unsigned number) { return !followsFromOthers(number); });
    unsigned number = next == open.end() ? *open.begin() : *next;
    facts.try_emplace(classes.findLeader(number), Fact{freeSize, Origin()});
    propagate();
  }
}
