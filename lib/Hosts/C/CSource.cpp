//===- CSource.cpp - kernels as a file of C -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Hosts/C/CSource.h"
#include "CFunction.h"
#include "CSupport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

template <typename... Args>
static llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// Fails where C cannot say what `function` needs.
static llvm::Error check(const ManifestFunction &function) {
  if (!isCName(function.name))
    return makeError("@{0} cannot be a function of C: give it a name of "
                     "letters, digits and '_' that is no word of C",
                     function.name);
  if (!function.checks.empty())
    return makeError("@{0} packs a weight and checks it, which a function of C "
                     "cannot report: pass weights that are packed",
                     function.name);
  for (const ManifestArgument &argument : function.arguments)
    if (argument.type.isNumber &&
        !llvm::is_contained({"f32", "f64", "i32", "i64", "index"},
                            argument.type.text))
      return makeError("argument {0} of @{1} is {2}, which C has no type for: "
                       "legal are f32, f64, i32, i64 and index",
                       argument.name, function.name, argument.type.text);
  for (const ManifestLaunch &launch : function.launches)
    for (const ManifestParameter &parameter : launch.parameters)
      if (parameter.kind == ManifestParameter::Kind::TensorMap &&
          !parameter.isByValue)
        return makeError("kernel {0} of @{1} takes the address of a tensor "
                         "map: bind its arguments (--arguments bound)",
                         launch.kernel, function.name);
  return llvm::Error::success();
}

/// PTX is text, with a string for each line; other bytes are numbers.
static void writeImage(raw_ostream &os, StringRef image) {
  os << "static const unsigned char image[] =";
  if (image.starts_with("//") || image.contains(".version")) {
    for (StringRef rest = image; !rest.empty();) {
      auto [line, others] = rest.split('\n');
      os << "\n    \"";
      llvm::printEscapedString(line, os);
      os << "\\n\"";
      rest = others;
    }
    os << ";\n\n";
    return;
  }
  os << " {";
  for (auto [number, byte] : llvm::enumerate(image.bytes()))
    os << (number % 16 ? " " : "\n    ") << unsigned(byte) << ",";
  os << "\n};\n\n";
}

namespace {

class SourceWriter {
public:
  SourceWriter(const Manifest &manifest, StringRef stem)
      : manifest(manifest), stem(stem) {}

  std::string writeSource(StringRef image);
  std::string writeHeader();

private:
  std::vector<const ManifestFunction *>
  getSelected(const ManifestFunction &function) const {
    std::vector<const ManifestFunction *> selected;
    for (const ManifestCase &one : function.cases)
      if (!llvm::is_contained(selected, &manifest.functions[one.function]))
        selected.push_back(&manifest.functions[one.function]);
    if (selected.empty())
      selected.push_back(&function);
    return selected;
  }
  /// Those that callers see: the others are cases of one.
  bool isCase(const ManifestFunction &function) const {
    int number = &function - manifest.functions.data();
    return llvm::any_of(manifest.functions, [&](const ManifestFunction &other) {
      return llvm::any_of(other.cases, [&](const ManifestCase &one) {
        return one.function == number;
      });
    });
  }
  void writeFunction(raw_ostream &os, const ManifestFunction &function);

  const Manifest &manifest;
  StringRef stem;
  std::map<std::string, unsigned> kernels;
};

} // namespace

void SourceWriter::writeFunction(raw_ostream &os,
                                 const ManifestFunction &function) {
  std::vector<const ManifestFunction *> selected = getSelected(function);
  CSignature signature(function, selected);
  if (!function.cases.empty())
    for (const ManifestFunction *one : selected) {
      os << "static int " << one->name << "(" << signature.writeParameters()
         << ") {\n";
      writeCBody(os, *one, signature, kernels);
      os << "}\n\n";
    }
  os << "int " << function.name << "(" << signature.writeParameters()
     << ") {\n  if (" << signature.writeChecks()
     << ")\n    return CUDA_ERROR_INVALID_VALUE;\n";
  if (function.cases.empty()) {
    writeCBody(os, function, signature, kernels);
    os << "}\n";
    return;
  }
  os << "  const int64_t number_of_tokens = "
     << writeCExpression(function, signature, *function.tokens) << ";\n";
  for (const ManifestCase &one : function.cases) {
    os << "  ";
    if (one.atMost)
      os << "if (number_of_tokens <= " << *one.atMost << ")\n    ";
    os << "return " << manifest.functions[one.function].name << "("
       << signature.writeNames() << ");\n";
  }
  os << "}\n";
}

std::string SourceWriter::writeSource(StringRef image) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Written by nm-compile --emit c: see " << stem
     << ".h.\n\n#include \"" << stem << ".h\"\n\n";
  writeImage(os, image);
  std::vector<std::string> names, waits;
  for (const ManifestKernel &kernel : manifest.kernels) {
    kernels[kernel.name] = names.size();
    names.push_back("\"" + kernel.name + "\"");
    waits.push_back(kernel.waits ? "1" : "0");
  }
  os << "enum { KERNELS = " << names.size() << " };\n"
     << "static const char *const kernel_names[KERNELS] = {\n    "
     << llvm::join(names, ",\n    ") << "};\n"
     << "// Whether a kernel may start before the one ahead of it has ended.\n"
     << "static const unsigned char kernel_waits[KERNELS] = {"
     << llvm::join(waits, ", ") << "};\n\n"
     << getCSupport() << "\nint " << stem
     << "_prepare(void) { return prepare(); }\n";
  for (const ManifestFunction &function : manifest.functions)
    if (!isCase(function)) {
      os << "\n";
      writeFunction(os, function);
    }
  return text;
}

std::string SourceWriter::writeHeader() {
  std::string text, guard = stem.upper() + "_H";
  llvm::raw_string_ostream os(text);
  os << "// Written by nm-compile --emit c.\n"
        "//\n"
        "// Functions launch kernels in a stream and return at once: 0, or a\n"
        "// CUresult. Pointers are of device memory, begin at a multiple of "
        "16\n"
        "// bytes, and arrays lie row by row without gaps. They may be "
        "captured\n"
        "// in a CUDA graph after a call of "
     << stem << "_prepare().\n\n#ifndef " << guard << "\n#define " << guard
     << "\n\n#include <cuda.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "// Loads the kernels, which the first call of any function does, "
        "too.\n"
        "int "
     << stem << "_prepare(void);\n";
  for (const ManifestFunction &function : manifest.functions) {
    if (isCase(function))
      continue;
    CSignature signature(function, getSelected(function));
    os << "\n/**\n"
       << signature.describe() << " */\nint " << function.name << "("
       << signature.writeParameters() << ");\n";
  }
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif // " << guard << "\n";
  return text;
}

llvm::Expected<CSource> nm_sparse::writeCSource(const Manifest &manifest,
                                                StringRef image,
                                                StringRef stem) {
  if (!isCName(stem))
    return makeError("a file of C is named by letters, digits and '_', not by "
                     "'{0}': its functions are",
                     stem);
  for (const ManifestFunction &function : manifest.functions)
    if (llvm::Error error = check(function))
      return std::move(error);
  SourceWriter writer(manifest, stem);
  CSource result;
  result.source = writer.writeSource(image);
  result.header = writer.writeHeader();
  return result;
}
