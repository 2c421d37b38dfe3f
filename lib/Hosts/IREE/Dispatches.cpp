//===- Dispatches.cpp - launches as dispatches ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch is a dispatch: what the kernel only reads are its operands, what it
// reads and writes are operands tied to results, and what it only writes are
// results. The kernel takes them in this order (--nm-sparse-bind-arguments).
//
//===----------------------------------------------------------------------===//

#include "ProgramWriter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

void ProgramWriter::writeLaunch(const ManifestLaunch &launch) {
  std::vector<std::string> grid, operands, types, results, resultTypes;
  std::vector<ManifestSource> written;
  for (const Expression &size : launch.grid)
    grid.push_back(code.write(size));
  // Scalars come first here, and last in the kernel.
  for (const ManifestParameter &parameter : launch.parameters)
    if (parameter.kind == ManifestParameter::Kind::Number) {
      bool isFloat = parameter.type == "f32";
      operands.push_back(isFloat ? code.define("arith.bitcast " +
                                               code.write(parameter.value) +
                                               " : f32 to i32")
                                 : code.writeInt32(parameter.value));
      types.emplace_back("i32");
    }
  // Results come last, so either all that is only written is new, or nothing.
  bool isNew = true;
  for (const ManifestParameter &parameter : launch.parameters)
    if (parameter.kind == ManifestParameter::Kind::Pointer &&
        parameter.access == Access::Write) {
      const ManifestSource &source = parameter.source;
      isNew &= values.count(getName(source)) == 0 &&
               (!source.isBuffer ||
                !function.buffers[source.number].initial.has_value());
    }
  for (const ManifestParameter &parameter : launch.parameters) {
    if (parameter.kind != ManifestParameter::Kind::Pointer)
      continue;
    const ManifestSource &source = parameter.source;
    std::string type = writeType(source);
    if (parameter.access == Access::Write && isNew) {
      resultTypes.push_back(type);
      written.push_back(source);
      continue;
    }
    operands.push_back(getValue(source));
    types.push_back(type);
    if (parameter.access == Access::Read || parameter.access == Access::None)
      continue;
    resultTypes.push_back(operands.back() + writeSizes(source));
    written.push_back(source);
  }
  for (const ManifestSource &source : written) {
    results.push_back("%" + getName(source) + "_" + std::to_string(launches));
    values[getName(source)] = results.back();
  }
  ++launches;
  body << llvm::formatv("    {0} = flow.dispatch @{1}::@{2}[{3}]({4})\n"
                        "        : ({5})\n        -> ({6})\n",
                        llvm::join(results, ", "), Executable::name,
                        launch.kernel, llvm::join(grid, ", "),
                        llvm::join(operands, ", "), llvm::join(types, ", "),
                        llvm::join(resultTypes, ", "));
}

bool ProgramWriter::isConstant(const ManifestLaunch &launch) const {
  int64_t number;
  auto isNumber = [&](const Expression &e) { return e.isNumber(number); };
  if (!llvm::all_of(launch.grid, isNumber))
    return false;
  return llvm::all_of(
      launch.parameters, [&](const ManifestParameter &parameter) {
        if (parameter.kind == ManifestParameter::Kind::Number)
          return isNumber(parameter.value);
        if (parameter.access == Access::Read)
          return isWeight(parameter.source);
        if (parameter.access != Access::Write || !parameter.source.isBuffer)
          return false;
        const ManifestBuffer &buffer =
            function.buffers[parameter.source.number];
        // No other launch writes it.
        auto writes = [&](const ManifestLaunch &other) {
          return &other != &launch &&
                 llvm::any_of(other.parameters, [&](const auto &p) {
                   return p.kind == ManifestParameter::Kind::Pointer &&
                          p.source.isBuffer &&
                          p.source.number == parameter.source.number &&
                          p.access != Access::Read;
                 });
        };
        return !llvm::is_contained(buffer.type.shape, kDynamicSize) &&
               !buffer.initial && llvm::none_of(function.launches, writes);
      });
}

void ProgramWriter::hoist(const ManifestLaunch &launch) {
  // The same code as in the function, with values of its own.
  ProgramWriter writer(os, manifest, function, prefix, instance);
  writer.loadWeights(writer.body, "    ");
  writer.writeLaunch(launch);
  std::string stores;
  for (const ManifestParameter &parameter : launch.parameters) {
    if (parameter.kind != ManifestParameter::Kind::Pointer ||
        parameter.access != Access::Write)
      continue;
    std::string global = getSymbol(function) + "." + getName(parameter.source);
    std::string type = writeTensorType(getType(parameter.source));
    os << "  util.global private @" << global << " : " << type << "\n";
    stores +=
        llvm::formatv("    util.global.store {0}, @{1} : {2}\n",
                      writer.values[getName(parameter.source)], global, type);
    values[getName(parameter.source)] = code.define(
        llvm::formatv("util.global.load immutable @{0} : {1}", global, type));
  }
  os << "  util.initializer {\n"
     << writer.text << stores << "    util.return\n  }\n";
}
