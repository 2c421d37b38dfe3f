//===- CExpressions.cpp - expressions of a manifest in C ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CExpressions.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

static std::string writeCall(Function function, const std::string &a,
                             const std::string &b) {
  switch (function) {
  case Function::Add:
    return "(" + a + " + " + b + ")";
  case Function::Sub:
    return "(" + a + " - " + b + ")";
  case Function::Mul:
    return "(" + a + " * " + b + ")";
  // Sizes are not negative, so C's division rounds down.
  case Function::FloorDiv:
    return "(" + a + " / " + b + ")";
  case Function::Mod:
    return "(" + a + " % " + b + ")";
  case Function::CeilDiv:
    return "nms_ceil_div(" + a + ", " + b + ")";
  case Function::Min:
    return "nms_minimum(" + a + ", " + b + ")";
  case Function::Max:
    return "nms_maximum(" + a + ", " + b + ")";
  }
  llvm_unreachable("all functions are written");
}

std::string CExpressions::write(const Expression &expression) const {
  ExpressionWriter writer;
  writer.number = [](int64_t number) { return std::to_string(number); };
  writer.quantity = [this](const Quantity &quantity) {
    return write(quantity);
  };
  writer.call = ::writeCall;
  return expression.write(writer);
}

std::string CExpressions::write(const Quantity &quantity) const {
  auto source = function.findSource(quantity.name).value_or(ManifestSource());
  switch (quantity.field) {
  case Quantity::Field::Value:
    return signature.getArgument(source.number);
  // Pointers are those of first elements.
  case Quantity::Field::Offset:
    return "0";
  case Quantity::Field::Size:
    return writeSize(source, quantity.dim);
  case Quantity::Field::Stride:
    return writeStride(source, quantity.dim);
  }
  llvm_unreachable("all quantities are written");
}

int64_t CExpressions::getRank(const ManifestSource &source) const {
  return source.isBuffer ? function.buffers[source.number].sizes.size()
                         : function.arguments[source.number].type.shape.size();
}

std::string CExpressions::writeSize(const ManifestSource &source,
                                    int64_t dim) const {
  return source.isBuffer ? write(function.buffers[source.number].sizes[dim])
                         : signature.writeSize(source.number, dim);
}

std::string CExpressions::writeStride(const ManifestSource &source,
                                      int64_t dim) const {
  std::vector<std::string> factors;
  for (int64_t next = dim + 1; next < getRank(source); ++next)
    factors.push_back(writeSize(source, next));
  return factors.empty()       ? "1"
         : factors.size() == 1 ? factors.front()
                               : "(" + llvm::join(factors, " * ") + ")";
}

std::vector<std::string>
CExpressions::writeSizes(const ManifestSource &source,
                         const std::optional<ManifestView> &view) const {
  std::vector<std::string> sizes;
  if (view)
    for (const Expression &size : view->sizes)
      sizes.push_back(write(size));
  else
    for (int64_t dim = 0; dim < getRank(source); ++dim)
      sizes.push_back(writeSize(source, dim));
  return sizes;
}

std::vector<std::string>
CExpressions::writeStrides(const ManifestSource &source,
                           const std::optional<ManifestView> &view) const {
  std::vector<std::string> strides;
  if (view)
    for (const Expression &stride : view->strides)
      strides.push_back(write(stride));
  else
    for (int64_t dim = 0; dim < getRank(source); ++dim)
      strides.push_back(writeStride(source, dim));
  return strides;
}

std::string nm_sparse::writeCExpression(const ManifestFunction &function,
                                        const CSignature &signature,
                                        const Expression &expression) {
  return CExpressions(function, signature).write(expression);
}
