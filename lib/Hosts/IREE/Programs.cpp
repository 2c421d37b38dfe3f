//===- Programs.cpp - programs as functions of IREE -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramWriter.h"

#include "nm_sparse/Support/MakeError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

std::string nm_sparse::writeTensorType(const ManifestType &type) {
  if (type.isNumber)
    return type.text;
  std::string text = "tensor<";
  for (int64_t size : type.shape)
    text += (size == kDynamicSize ? "?" : std::to_string(size)) + "x";
  return text + type.element + ">";
}

/// Returns true if `result` is all of an argument, whose rows have no gaps.
static bool isWhole(const ManifestResult &result,
                    const ManifestFunction &function) {
  int64_t offset = -1;
  if (!result.view)
    return true;
  return !result.source.isBuffer && result.view->offset.isNumber(offset) &&
         offset == 0 &&
         writeTensorType(result.type) ==
             writeTensorType(function.arguments[result.source.number].type);
}

llvm::Error ProgramWriter::check() const {
  if (!function.checks.empty())
    return makeError("@{0} packs a weight and checks it, which IREE cannot "
                     "report: pass weights that are packed",
                     function.name);
  for (const ManifestResult &result : function.results)
    if (!isWhole(result, function))
      return makeError("a result of @{0} is a part of a buffer, which IREE "
                       "would copy: compile it with results of its own memory",
                       function.name);
  return llvm::Error::success();
}

std::string ProgramWriter::readSize(const ManifestSource &source, int64_t dim) {
  int64_t size = getType(source).shape[dim];
  if (size != kDynamicSize)
    return code.write(size);
  if (source.isBuffer)
    return code.write(function.buffers[source.number].sizes[dim]);
  return code.define(llvm::formatv("tensor.dim %{0}, {1} : {2}",
                                   getName(source), code.write(dim),
                                   writeTensorType(getType(source))));
}

std::string ProgramWriter::read(const Quantity &quantity) {
  auto source = function.findSource(quantity.name).value_or(ManifestSource());
  switch (quantity.field) {
  case Quantity::Field::Value:
    return "%" + quantity.name;
  // Tensors begin at their first element, and have no gaps.
  case Quantity::Field::Offset:
    return code.write(0);
  case Quantity::Field::Size:
    return readSize(source, quantity.dim);
  case Quantity::Field::Stride: {
    std::string stride = code.write(1);
    for (int64_t dim = getType(source).shape.size() - 1; dim > quantity.dim;
         --dim)
      stride = code.define(llvm::formatv("arith.muli {0}, {1} : index",
                                         readSize(source, dim), stride));
    return stride;
  }
  }
  llvm_unreachable("all quantities are read");
}

std::string ProgramWriter::writeSizes(const ManifestSource &source) {
  std::vector<std::string> sizes;
  for (auto [dim, size] : llvm::enumerate(getType(source).shape))
    if (size == kDynamicSize)
      sizes.push_back(readSize(source, dim));
  return sizes.empty() ? "" : "{" + llvm::join(sizes, ", ") + "}";
}

std::string ProgramWriter::writeType(const ManifestSource &source) {
  return writeTensorType(getType(source)) + writeSizes(source);
}

std::string ProgramWriter::getValue(const ManifestSource &source) {
  const std::string &name = getName(source);
  auto found = values.find(name);
  if (found != values.end())
    return found->second;
  if (!source.isBuffer)
    return values[name] = "%" + name;
  const ManifestBuffer &buffer = function.buffers[source.number];
  std::string type = writeTensorType(buffer.type), sizes = writeSizes(source);
  if (!sizes.empty())
    sizes = sizes.substr(1, sizes.size() - 2);
  std::string empty =
      code.define("tensor.empty(" + sizes + ") : " + type + " // " + name);
  if (!buffer.initial)
    return values[name] = empty;
  bool isInteger = buffer.type.element[0] == 'i';
  std::string number =
      code.define("arith.constant " + buffer.initial->getText() +
                  (isInteger ? "" : ".0") + " : " + buffer.type.element);
  return values[name] = code.define(
             llvm::formatv("linalg.fill ins({0} : {1}) outs({2} : {3}) -> {3}",
                           number, buffer.type.element, empty, type));
}

void ProgramWriter::loadWeights(raw_ostream &os, StringRef indent) {
  for (auto [number, argument] : llvm::enumerate(function.arguments)) {
    auto found = instance.globals.find(number);
    if (found != instance.globals.end())
      os << indent << "%" << argument.name << " = util.global.load immutable @"
         << found->second << " : " << writeTensorType(argument.type) << "\n";
  }
}

std::vector<std::string> ProgramWriter::getResultTypes() const {
  const ManifestFunction &one =
      function.cases.empty()
          ? function
          : manifest.functions[function.cases.front().function];
  std::vector<std::string> types;
  types.reserve(one.results.size());
  for (const ManifestResult &result : one.results)
    types.push_back(writeTensorType(result.type));
  return types;
}

std::string ProgramWriter::listResults(const std::string &value) const {
  std::vector<std::string> all;
  for (unsigned i = 0; i < getResultTypes().size(); ++i)
    all.push_back(value + "#" + std::to_string(i));
  return llvm::join(all, ", ");
}

void ProgramWriter::writeCases() {
  std::vector<std::string> names, types;
  for (auto [number, argument] : llvm::enumerate(function.arguments))
    if (!isWeight({false, int(number)})) {
      names.push_back("%" + argument.name);
      types.push_back(writeTensorType(argument.type));
    }
  // Several ranges of tokens may have one function, which is called once.
  std::vector<int> classes;
  for (const ManifestCase &one : function.cases)
    if (!llvm::is_contained(classes, one.function))
      classes.push_back(one.function);
  auto getClass = [&](const ManifestCase &one) {
    return int64_t(llvm::find(classes, one.function) - classes.begin());
  };
  std::string tokens = code.write(*function.tokens);
  std::string chosen = code.write(getClass(function.cases.back()));
  for (const ManifestCase &one :
       llvm::reverse(ArrayRef(function.cases).drop_back())) {
    std::string most = code.write(*one.atMost);
    std::string isFew = code.define(
        llvm::formatv("arith.cmpi sle, {0}, {1} : index", tokens, most));
    chosen =
        code.define(llvm::formatv("arith.select {0}, {1}, {2} : index", isFew,
                                  code.write(getClass(one)), chosen));
  }
  std::string results = llvm::join(getResultTypes(), ", ");
  // IREE does not find the sizes of what scf.index_switch gives.
  std::string indent = "    ", ends, into = "%result";
  for (auto [number, called] : llvm::enumerate(classes)) {
    bool isLast = number + 1 == classes.size();
    std::string call = llvm::formatv(
        ":{0} = func.call @{1}({2})\n{3}      : ({4}) -> ({5})\n",
        getResultTypes().size(), getSymbol(manifest.functions[called]),
        llvm::join(names, ", "), indent, llvm::join(types, ", "), results);
    if (isLast) {
      body << indent << into << call;
      if (number > 0)
        body << indent << "scf.yield " << listResults(into) << " : " << results
             << "\n";
      break;
    }
    std::string isThis = number == 0
                             ? code.define("arith.cmpi eq, " + chosen + ", " +
                                           code.write(0) + " : index")
                             : "%is" + std::to_string(number);
    if (number > 0)
      body << indent << "%class" << number << " = arith.constant " << number
           << " : index\n"
           << indent << isThis << " = arith.cmpi eq, " << chosen << ", %class"
           << number << " : index\n";
    body << indent << into << ":" << getResultTypes().size() << " = scf.if "
         << isThis << " -> (" << results << ") {\n"
         << indent << "  %called" << call << indent << "  scf.yield "
         << listResults("%called") << " : " << results << "\n"
         << indent << "} else {\n";
    std::string end = indent + "}\n";
    if (number > 0)
      end += llvm::formatv("{0}scf.yield {1} : {2}\n", indent,
                           listResults(into), results);
    ends.insert(0, end);
    indent += "  ";
    into = "%else" + std::to_string(number);
  }
  body << ends;
  body << "    return " << listResults("%result") << " : " << results << "\n";
}

llvm::Error ProgramWriter::write() {
  if (llvm::Error error = check())
    return error;
  loadWeights(body, "    ");
  if (!function.cases.empty()) {
    writeCases();
  } else {
    for (const ManifestLaunch &launch : function.launches)
      if (isConstant(launch))
        hoist(launch);
      else
        writeLaunch(launch);
    std::vector<std::string> results;
    results.reserve(function.results.size());
    for (const ManifestResult &result : function.results)
      results.push_back(getValue(result.source));
    body << "    return " << llvm::join(results, ", ") << " : "
         << llvm::join(getResultTypes(), ", ") << "\n";
  }
  std::vector<std::string> arguments;
  for (auto [number, argument] : llvm::enumerate(function.arguments))
    if (!isWeight({false, int(number)}))
      arguments.push_back("%" + argument.name + ": " +
                          writeTensorType(argument.type));
  os << "  func.func private @" << getSymbol(function) << "("
     << llvm::join(arguments, ", ") << ")\n      -> ("
     << llvm::join(getResultTypes(), ", ") << ") {\n"
     << text << "  }\n";
  return llvm::Error::success();
}

llvm::Error nm_sparse::writePrograms(raw_ostream &os, const Manifest &manifest,
                                     StringRef prefix,
                                     ArrayRef<ProgramInstance> instances,
                                     Executable &executable) {
  for (const ProgramInstance &instance : instances) {
    std::vector<const ManifestFunction *> functions;
    for (const ManifestCase &one : instance.program->cases)
      if (const ManifestFunction *called = &manifest.functions[one.function];
          !llvm::is_contained(functions, called))
        functions.push_back(called);
    functions.push_back(instance.program);
    for (const ManifestFunction *function : functions) {
      for (const ManifestLaunch &launch : function->launches)
        if (llvm::Error error = executable.add(launch))
          return error;
      if (llvm::Error error =
              ProgramWriter(os, manifest, *function, prefix, instance).write())
        return error;
    }
  }
  return llvm::Error::success();
}
