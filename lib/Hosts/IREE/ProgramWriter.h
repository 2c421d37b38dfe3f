//===- ProgramWriter.h - a program as a function of IREE --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_IREE_PROGRAMWRITER_H
#define NM_SPARSE_LIB_HOSTS_IREE_PROGRAMWRITER_H

#include "IndexCode.h"
#include "Programs.h"

namespace mlir::nm_sparse {

/// Writes one function.
class ProgramWriter {
public:
  ProgramWriter(llvm::raw_ostream &os, const nms::Manifest &manifest,
                const nms::ManifestFunction &function, llvm::StringRef prefix,
                const ProgramInstance &instance)
      : os(os), manifest(manifest), function(function), prefix(prefix),
        instance(instance),
        code(body, "    ", [this](const nms::Quantity &q) { return read(q); }) {
  }

  llvm::Error write();

private:
  using Access = nms::ManifestAccess;

  llvm::Error check() const;
  void writeCases();
  void loadWeights(llvm::raw_ostream &os, llvm::StringRef indent);
  void writeLaunch(const nms::ManifestLaunch &launch);
  /// Computes what depends on weights alone, in front of the function.
  void hoist(const nms::ManifestLaunch &launch);
  llvm::Expected<std::string> writeResult(const nms::ManifestResult &result);
  std::vector<std::string> getResultTypes() const;
  /// The results of `value`, of an operation with as many as the function.
  std::string listResults(const std::string &value) const;

  bool isWeight(const nms::ManifestSource &source) const {
    return !source.isBuffer && instance.globals.count(unsigned(source.number));
  }
  bool isConstant(const nms::ManifestLaunch &launch) const;
  /// The name of the function that is written for `one` of this instance.
  std::string getSymbol(const nms::ManifestFunction &one) const {
    return (prefix + one.name + instance.suffix).str();
  }
  const nms::ManifestType &getType(const nms::ManifestSource &source) const {
    return source.isBuffer ? function.buffers[source.number].type
                           : function.arguments[source.number].type;
  }
  const std::string &getName(const nms::ManifestSource &source) const {
    return source.isBuffer ? function.buffers[source.number].name
                           : function.arguments[source.number].name;
  }
  std::string read(const nms::Quantity &quantity);
  std::string readSize(const nms::ManifestSource &source, int64_t dim);
  /// The type of `source`, with the values of its sizes: tensor<?xf16>{%i0}.
  std::string writeType(const nms::ManifestSource &source);
  /// {%i0}, or nothing.
  std::string writeSizes(const nms::ManifestSource &source);
  /// The array in its latest state, which is made where nobody did so before.
  std::string getValue(const nms::ManifestSource &source);

  llvm::raw_ostream &os;
  const nms::Manifest &manifest;
  const nms::ManifestFunction &function;
  llvm::StringRef prefix;
  const ProgramInstance &instance;
  std::string text;
  llvm::raw_string_ostream body{text};
  IndexCode code;
  std::map<std::string, std::string> values; ///< The SSA value of each array.
  unsigned launches = 0;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_IREE_PROGRAMWRITER_H
