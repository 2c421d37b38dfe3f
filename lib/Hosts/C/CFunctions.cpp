//===- CFunctions.cpp - the C functions for one of a manifest -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function F becomes F_with_workspace, which launches, F, which gives it
// memory of the stream's pool, and F_workspace, which says how much. Each
// selects what is for the number of tokens.
//
//===----------------------------------------------------------------------===//

#include "CFunction.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

std::string nm_sparse::getWorkspaceName(const ManifestFunction &function) {
  return function.name + "_workspace";
}

std::string nm_sparse::getWithWorkspaceName(const ManifestFunction &function) {
  return function.name + "_with_workspace";
}

std::vector<const ManifestFunction *>
nm_sparse::getSelected(const Manifest &manifest,
                       const ManifestFunction &function) {
  std::vector<const ManifestFunction *> selected;
  for (const ManifestCase &one : function.cases)
    if (!llvm::is_contained(selected, &manifest.functions[one.function]))
      selected.push_back(&manifest.functions[one.function]);
  if (selected.empty())
    selected.push_back(&function);
  return selected;
}

namespace {

class FunctionsWriter {
public:
  FunctionsWriter(raw_ostream &os, const Manifest &manifest,
                  const ManifestFunction &function)
      : os(os), manifest(manifest), function(function),
        selected(getSelected(manifest, function)),
        signature(function, selected),
        needsWorkspace(llvm::any_of(selected, [](const ManifestFunction *one) {
          return hasWorkspace(*one);
        })) {}

  void write(const KernelNumbers &kernels);
  void declare();

private:
  void writeRefusal();
  void writeCases(const KernelNumbers &kernels);
  void writeWorkspace();
  void writeWithWorkspace();
  void writeAllocating();
  /// Returns what a case gives; `getCall` writes the call for that number.
  void select(function_ref<std::string(unsigned)> getCall);

  /// A name of the file's own; equal functions, which share what they select,
  /// have each their own.
  std::string getOwnName(const llvm::Twine &what) const {
    return ("nms_" + what + "_" + function.name).str();
  }
  std::string refuses() const {
    return getOwnName("refuses") + "(" + signature.writeNames() + ")";
  }
  std::string getWorkspace() const {
    return getWorkspaceName(function) + "(" + signature.writeSizeNames() + ")";
  }

  raw_ostream &os;
  const Manifest &manifest;
  const ManifestFunction &function;
  std::vector<const ManifestFunction *> selected;
  CSignature signature;
  bool needsWorkspace;
};

} // namespace

void FunctionsWriter::select(function_ref<std::string(unsigned)> getCall) {
  if (function.cases.empty()) {
    os << "  return " << getCall(0) << ";\n";
    return;
  }
  os << "  const int64_t number_of_tokens = "
     << writeCExpression(function, signature, *function.tokens) << ";\n";
  for (const ManifestCase &one : function.cases) {
    os << "  ";
    if (one.atMost)
      os << "if (number_of_tokens <= " << *one.atMost << ")\n    ";
    auto it = llvm::find(selected, &manifest.functions[one.function]);
    os << "return " << getCall(it - selected.begin()) << ";\n";
  }
}

void FunctionsWriter::writeRefusal() {
  std::string checks = signature.writeChecks();
  os << "static int " << getOwnName("refuses") << "("
     << signature.writeParameters() << ") {\n  return "
     << (checks.empty() ? "0" : checks) << ";\n}\n\n";
}

void FunctionsWriter::writeCases(const KernelNumbers &kernels) {
  for (auto [number, one] : llvm::enumerate(selected)) {
    if (!function.cases.empty())
      os << "// " << one->name << "\n";
    os << "static int " << getOwnName("case" + llvm::Twine(number)) << "("
       << signature.writeParameters() << ", CUdeviceptr workspace) {\n";
    writeCBody(os, *one, signature, kernels);
    os << "}\n\n";
    if (!needsWorkspace)
      continue;
    os << "static int64_t " << getOwnName("bytes" + llvm::Twine(number)) << "("
       << signature.writeSizeParameters() << ") {\n";
    writeCBytes(os, *one, signature);
    os << "}\n\n";
  }
}

void FunctionsWriter::writeWorkspace() {
  os << "size_t " << getWorkspaceName(function) << "("
     << signature.writeSizeParameters() << ") {\n";
  if (std::string checks = signature.writeSizeChecks(); !checks.empty())
    os << "  if (" << checks << ")\n    return SIZE_MAX;\n";
  if (needsWorkspace)
    select([&](unsigned number) {
      return "(size_t)" + getOwnName("bytes" + llvm::Twine(number)) + "(" +
             signature.writeSizeNames() + ")";
    });
  else
    os << "  return 0;\n";
  os << "}\n\n";
}

void FunctionsWriter::writeWithWorkspace() {
  os << "int " << getWithWorkspaceName(function) << "("
     << signature.writeParameters() << ", void *workspace) {\n  if ("
     << refuses();
  if (needsWorkspace)
    os << " ||\n      nms_is_misplaced_workspace(workspace, " << getWorkspace()
       << ")";
  os << ")\n    return CUDA_ERROR_INVALID_VALUE;\n";
  select([&](unsigned number) {
    return getOwnName("case" + llvm::Twine(number)) + "(" +
           signature.writeNames() + ", (CUdeviceptr)workspace)";
  });
  os << "}\n\n";
}

void FunctionsWriter::writeAllocating() {
  os << "int " << function.name << "(" << signature.writeParameters()
     << ") {\n";
  std::string call =
      getWithWorkspaceName(function) + "(" + signature.writeNames() + ", ";
  if (!needsWorkspace) {
    os << "  return " << call << "NULL);\n}\n";
    return;
  }
  os << llvm::formatv(
      "  if ({0})\n"
      "    return CUDA_ERROR_INVALID_VALUE;\n"
      "  void *workspace;\n"
      "  CUresult status = nms_allocate(&workspace, {1}, stream);\n"
      "  if (status == CUDA_SUCCESS)\n"
      "    status = {2}workspace);\n"
      "  return nms_release(workspace, stream, status);\n"
      "}\n",
      refuses(), getWorkspace(), call);
}

void FunctionsWriter::write(const KernelNumbers &kernels) {
  writeRefusal();
  writeCases(kernels);
  writeWorkspace();
  writeWithWorkspace();
  writeAllocating();
}

void FunctionsWriter::declare() {
  std::string parameters = signature.writeParameters();
  os << "/**\n"
     << signature.describe() << " */\nint " << function.name << "("
     << parameters << ");\nint " << getWithWorkspaceName(function) << "("
     << parameters << ", void *workspace);\nsize_t "
     << getWorkspaceName(function) << "(" << signature.writeSizeParameters()
     << ");\n";
}

void nm_sparse::writeCFunctions(raw_ostream &os, const Manifest &manifest,
                                const ManifestFunction &function,
                                const KernelNumbers &kernels) {
  FunctionsWriter(os, manifest, function).write(kernels);
}

void nm_sparse::writeCDeclarations(raw_ostream &os, const Manifest &manifest,
                                   const ManifestFunction &function) {
  FunctionsWriter(os, manifest, function).declare();
}
