//===- CSignature.cpp - what a C function takes ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CExpressions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

/// `text` as a name in C, or, where that is none, `otherwise`.
static std::string toCName(StringRef text, StringRef otherwise) {
  std::string name = text.str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return isCName(name) ? name : otherwise.str();
}

bool nm_sparse::isOwnBuffer(const ManifestFunction &function, unsigned number) {
  auto isWhole = [](const ManifestResult &result) {
    return result.source.isBuffer && !result.view;
  };
  const ManifestResult &result = function.results[number];
  if (!isWhole(result))
    return false;
  for (unsigned before = 0; before < number; ++before)
    if (isWhole(function.results[before]) &&
        function.results[before].source.number == result.source.number)
      return false;
  return true;
}

CSignature::CSignature(const ManifestFunction &function,
                       ArrayRef<const ManifestFunction *> selected)
    : function(function), first(*selected.front()),
      isWritten(function.arguments.size()),
      isSizeValue(function.arguments.size()) {
  for (const ManifestFunction *one : selected)
    for (const ManifestLaunch &launch : one->launches)
      for (const ManifestParameter &parameter : launch.parameters)
        if (parameter.kind == ManifestParameter::Kind::Pointer &&
            !parameter.source.isBuffer &&
            (parameter.access == ManifestAccess::Write ||
             parameter.access == ManifestAccess::ReadWrite))
          isWritten[parameter.source.number] = true;
  for (const ManifestFunction *one : selected)
    for (const ManifestBuffer &buffer : one->buffers)
      for (const Expression &size : buffer.sizes)
        for (const Quantity &quantity : size.getQuantities())
          for (auto [number, argument] : llvm::enumerate(function.arguments))
            if (argument.type.isNumber && argument.name == quantity.name)
              isSizeValue[number] = true;
  takeBodyNames(selected);
  nameArguments();
  nameSizes(selected);
}

/// A parameter may not hide what bodies declare and call.
void CSignature::takeBodyNames(ArrayRef<const ManifestFunction *> selected) {
  taken = {"stream",     "status", "workspace",       "bytes",
           "parameters", "block",  "sizes",           "strides",
           "box",        "done",   "number_of_tokens"};
  taken.insert(getWorkspaceName(function));
  taken.insert(getWithWorkspaceName(function));
  for (const ManifestFunction *one : selected) {
    taken.insert(one->name);
    for (unsigned number = 0; number < one->results.size(); ++number)
      taken.insert(getResult(number));
    for (const ManifestBuffer &buffer : one->buffers) {
      taken.insert(buffer.name);
      taken.insert(buffer.name + "_at");
    }
    for (auto [number, launch] : llvm::enumerate(one->launches)) {
      taken.insert("grid" + std::to_string(number));
      for (unsigned p = 0; p < launch.parameters.size(); ++p)
        taken.insert("p" + std::to_string(p));
    }
  }
}

std::string CSignature::makeUnique(const std::string &name) {
  std::string unique = name;
  for (unsigned i = 1; !taken.insert(unique).second; ++i)
    unique = name + "_" + std::to_string(i);
  return unique;
}

void CSignature::nameArguments() {
  for (const ManifestArgument &argument : function.arguments) {
    std::string name = toCName(argument.label, argument.name);
    if (!argument.component.empty())
      name = toCName((argument.label.empty()
                          ? "w" + std::to_string(argument.weight)
                          : argument.label) +
                         "_" + argument.component,
                     argument.name);
    arguments.push_back(makeUnique(name));
  }
}

/// A size that no expression reads need not be passed.
void CSignature::nameSizes(ArrayRef<const ManifestFunction *> selected) {
  std::set<std::pair<unsigned, int64_t>> used;
  auto visit = [&](const Expression &expression) {
    for (const Quantity &quantity : expression.getQuantities())
      for (auto [number, argument] : llvm::enumerate(function.arguments)) {
        if (argument.name != quantity.name || argument.type.isNumber)
          continue;
        int64_t rank = argument.type.shape.size();
        bool isStride = quantity.field == Quantity::Field::Stride;
        if (quantity.field != Quantity::Field::Size && !isStride)
          continue;
        // Strides are those of rows without gaps.
        for (int64_t dim = isStride ? quantity.dim + 1 : quantity.dim,
                     end = isStride ? rank : quantity.dim + 1;
             dim < end; ++dim)
          if (argument.type.shape[dim] == kDynamicSize)
            used.insert({number, dim});
      }
  };
  auto visitAll = [&](const std::vector<Expression> &list) {
    llvm::for_each(list, visit);
  };
  auto visitView = [&](const std::optional<ManifestView> &view) {
    if (!view)
      return;
    visit(view->offset);
    visitAll(view->sizes);
    visitAll(view->strides);
  };
  if (function.tokens)
    visit(*function.tokens);
  for (const ManifestFunction *one : selected) {
    for (const ManifestBuffer &buffer : one->buffers)
      visitAll(buffer.sizes);
    for (const ManifestLaunch &launch : one->launches) {
      visitAll(launch.grid);
      visitAll(launch.block);
      visit(launch.sharedBytes);
      for (const ManifestParameter &parameter : launch.parameters) {
        if (parameter.kind == ManifestParameter::Kind::Number)
          visit(parameter.value);
        visitView(parameter.view);
        // A map is of all sizes of its array.
        if (parameter.kind == ManifestParameter::Kind::TensorMap &&
            !parameter.view && !parameter.source.isBuffer) {
          unsigned number = parameter.source.number;
          for (auto [dim, size] :
               llvm::enumerate(function.arguments[number].type.shape))
            if (size == kDynamicSize)
              used.insert({number, int64_t(dim)});
        }
      }
    }
    for (const ManifestResult &result : one->results)
      visitView(result.view);
  }
  // The tokens have that name, as do others where they are all that varies.
  std::optional<std::pair<unsigned, int64_t>> tokens;
  if (used.size() == 1)
    tokens = *used.begin();
  else if (function.tokens && function.tokens->getQuantities().size() == 1)
    for (auto [number, dim] : used)
      if (Quantity{function.arguments[number].name, Quantity::Field::Size, dim}
              .write() == function.tokens->getText())
        tokens = {number, dim};
  for (auto place : used)
    sizes[place] =
        makeUnique(place == tokens ? std::string("tokens")
                                   : arguments[place.first] + "_size" +
                                         std::to_string(place.second));
}

std::string CSignature::writeSize(unsigned argument, int64_t dim) const {
  int64_t size = function.arguments[argument].type.shape[dim];
  if (size != kDynamicSize)
    return std::to_string(size);
  auto found = sizes.find({argument, dim});
  return found == sizes.end() ? "?" : found->second;
}

std::string CSignature::getResult(unsigned number) const {
  return "result" + std::to_string(number);
}

std::string CSignature::writeParameters() const {
  std::string text = "CUstream stream";
  for (auto [number, argument] : llvm::enumerate(function.arguments)) {
    text += ", ";
    if (argument.type.isNumber)
      text += getNumberType(argument.type.text).str() + " ";
    else
      text += isWritten[number] ? "void *" : "const void *";
    text += arguments[number];
  }
  for (auto [number, result] : llvm::enumerate(first.results))
    if (result.source.isBuffer)
      text += ", void *" + getResult(number);
  for (const auto &[place, name] : sizes)
    text += ", int64_t " + name;
  return text;
}

std::string CSignature::writeNames() const {
  std::string text = "stream";
  for (const std::string &name : arguments)
    text += ", " + name;
  for (auto [number, result] : llvm::enumerate(first.results))
    if (result.source.isBuffer)
      text += ", " + getResult(number);
  for (const auto &[place, name] : sizes)
    text += ", " + name;
  return text;
}

std::string CSignature::writeSizeParameters() const {
  SmallVector<std::string> texts;
  for (auto [number, argument] : llvm::enumerate(function.arguments))
    if (isSizeValue[number])
      texts.push_back(getNumberType(argument.type.text).str() + " " +
                      arguments[number]);
  for (const auto &[place, name] : sizes)
    texts.push_back("int64_t " + name);
  return texts.empty() ? "void" : llvm::join(texts, ", ");
}

std::string CSignature::writeSizeNames() const {
  SmallVector<std::string> texts;
  for (auto [number, name] : llvm::enumerate(arguments))
    if (isSizeValue[number])
      texts.push_back(name);
  for (const auto &[place, name] : sizes)
    texts.push_back(name);
  return llvm::join(texts, ", ");
}

std::string CSignature::describe() const {
  std::string text;
  auto add = [&](StringRef name, StringRef what) {
    text += llvm::formatv(" * {0}: {1}\n", name, what).str();
  };
  int64_t described = -1;
  for (auto [number, argument] : llvm::enumerate(function.arguments)) {
    const ManifestType &type = argument.type;
    // A weight is said before its first component.
    for (const ManifestWeight &weight : function.weights)
      if (weight.number == argument.weight && described != argument.weight) {
        described = weight.number;
        SmallVector<std::string> extents;
        for (int64_t size : weight.shape)
          extents.push_back(std::to_string(size));
        text += llvm::formatv(" * {0} of {1} [{2}], packed:\n", weight.encoding,
                              weight.elementType, llvm::join(extents, ", "))
                    .str();
      }
    std::string what = type.isNumber ? type.text : type.element + " [";
    for (size_t dim = 0; dim < type.shape.size(); ++dim)
      what += (dim ? ", " : "") + writeSize(number, dim);
    if (!type.isNumber)
      what += isWritten[number] ? "], written" : "]";
    add(arguments[number], what);
  }
  for (auto [number, result] : llvm::enumerate(first.results)) {
    if (!result.source.isBuffer)
      continue;
    std::vector<std::string> extents =
        CExpressions(first, *this).writeSizes(result.source, result.view);
    add(getResult(number),
        result.type.element + " [" + llvm::join(extents, ", ") + "], written");
  }
  for (const auto &[place, name] : sizes)
    add(name,
        llvm::formatv("size {0} of {1}", place.second, arguments[place.first])
            .str());
  return text;
}

/// An expression of C that is true where an array of these sizes has elements;
/// false where a size is not known.
static std::string hasElements(ArrayRef<std::string> sizes) {
  SmallVector<std::string> conditions;
  for (const std::string &size : sizes)
    if (int64_t number = 0; StringRef(size).getAsInteger(10, number))
      conditions.push_back(size == "?" ? "0" : size + " > 0");
    else if (number == 0)
      conditions.emplace_back("0");
  return conditions.empty() ? "1" : llvm::join(conditions, " && ");
}

static constexpr llvm::StringLiteral kOr = " ||\n      ";

std::string CSignature::writeSizeChecks() const {
  SmallVector<std::string> refused;
  for (auto [number, name] : llvm::enumerate(arguments)) {
    if (!isSizeValue[number])
      continue;
    refused.push_back(name + " < 0");
    if (getNumberType(function.arguments[number].type.text) == "int64_t")
      refused.push_back(name + " > INT32_MAX");
  }
  for (const auto &[place, name] : sizes)
    refused.push_back(llvm::formatv("{0} < 0 || {0} > INT32_MAX", name).str());
  return llvm::join(refused, kOr);
}

std::string CSignature::writeChecks() const {
  // Sizes first, since the others are computed from them.
  SmallVector<std::string> refused;
  if (std::string first = writeSizeChecks(); !first.empty())
    refused.push_back(first);
  auto add = [&](const std::string &name, ArrayRef<std::string> extents) {
    refused.push_back("nms_is_misplaced(" + name + ", " + hasElements(extents) +
                      ")");
  };
  for (auto [number, argument] : llvm::enumerate(function.arguments)) {
    SmallVector<std::string> extents;
    for (size_t dim = 0; dim < argument.type.shape.size(); ++dim)
      extents.push_back(writeSize(number, dim));
    if (!argument.type.isNumber)
      add(arguments[number], extents);
  }
  for (auto [number, result] : llvm::enumerate(first.results))
    if (result.source.isBuffer)
      add(getResult(number),
          CExpressions(first, *this).writeSizes(result.source, result.view));
  return llvm::join(refused, kOr);
}
