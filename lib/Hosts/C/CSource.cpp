//===- CSource.cpp - kernels as a file of C -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Hosts/C/CSource.h"
#include "CFunction.h"
#include "CSupport.h"
#include "nm_sparse/Support/MakeError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

/// Returns true if the elements of the last dimension follow each other.
static bool hasRows(const ManifestView &view) {
  int64_t stride = 0;
  return view.strides.empty() ||
         (view.strides.back().isNumber(stride) && stride == 1);
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
    if (argument.type.isNumber && getNumberType(argument.type.text).empty())
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
  for (auto [number, result] : llvm::enumerate(function.results))
    if (result.source.isBuffer && result.view && !hasRows(*result.view))
      return makeError("result {0} of @{1} lies in its buffer with a stride "
                       "of {2} between elements, and C copies whole rows: "
                       "transpose it in the program",
                       number, function.name,
                       result.view->strides.back().getText());
  return llvm::Error::success();
}

/// Fails where callers could not know what is theirs: a function and those that
/// it selects have results in the same arguments, or in memory of the caller.
static llvm::Error checkResults(const ManifestFunction &function,
                                ArrayRef<const ManifestFunction *> selected) {
  auto getPlace = [](const ManifestResult &result) {
    return result.source.isBuffer ? -1 : result.source.number;
  };
  const std::vector<ManifestResult> &first = selected.front()->results;
  for (const ManifestFunction *one : selected)
    for (size_t number = 0; number < first.size(); ++number)
      if (one->results.size() != first.size() ||
          getPlace(one->results[number]) != getPlace(first[number]))
        return makeError("result {0} of @{1} lies in an argument for some "
                         "numbers of tokens and elsewhere for others: compile "
                         "for one number (--max-kernels 1)",
                         number, function.name);
  return llvm::Error::success();
}

/// Writes `line` as characters of a string of C.
static void writeEscaped(raw_ostream &os, StringRef line) {
  for (unsigned char c : line) {
    if (c == '\t')
      os << "\\t";
    else if (c == '"' || c == '\\' || c == '?') // Two of ? begin a trigraph.
      os << '\\' << c;
    else if (llvm::isPrint(c))
      os << c;
    else // Three octal digits, so that none that follow belong to it.
      os << '\\' << char('0' + c / 64) << char('0' + c / 8 % 8)
         << char('0' + c % 8);
  }
}

/// Text is written with a string for each line, which ends in a zero as the
/// driver expects; a cubin as numbers.
static void writeImage(raw_ostream &os, StringRef image) {
  os << "static const unsigned char nms_image[] =";
  if (!image.contains('\0')) {
    for (StringRef rest = image; !rest.empty();) {
      auto [line, others] = rest.split('\n');
      os << "\n    \"";
      writeEscaped(os, line);
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

  llvm::Error check() const;
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

llvm::Error SourceWriter::check() const {
  if (!hasCLetters(stem) || llvm::isDigit(stem.front()))
    return makeError("a file of C is named by letters, digits and '_', not by "
                     "'{0}': its functions are",
                     stem);
  if (stem == "cuda" || stem == "stdint")
    return makeError("a file of C is named by letters, digits and '_', and not "
                     "as a header that it includes: not '{0}'",
                     stem);
  for (const ManifestFunction &function : manifest.functions) {
    if (llvm::Error error = ::check(function))
      return error;
    if (function.name == (stem + "_prepare").str())
      return makeError("@{0} has the name of the function that loads the "
                       "kernels of {1}.c: give one of them another name",
                       function.name, stem);
    if (llvm::Error error = checkResults(function, getSelected(function)))
      return error;
  }
  return llvm::Error::success();
}

void SourceWriter::writeFunction(raw_ostream &os,
                                 const ManifestFunction &function) {
  std::vector<const ManifestFunction *> selected = getSelected(function);
  CSignature signature(function, selected);
  // Equal functions share those that they select, whose parameters have the
  // names that this one gives them.
  auto getName = [&](const ManifestFunction *one) {
    return ("nms_" + function.name + "_case" +
            llvm::Twine(llvm::find(selected, one) - selected.begin()))
        .str();
  };
  if (!function.cases.empty())
    for (const ManifestFunction *one : selected) {
      os << "// " << one->name << "\nstatic int " << getName(one) << "("
         << signature.writeParameters() << ") {\n";
      writeCBody(os, *one, signature, kernels);
      os << "}\n\n";
    }
  os << "int " << function.name << "(" << signature.writeParameters()
     << ") {\n";
  if (std::string checks = signature.writeChecks(); !checks.empty())
    os << "  if (" << checks << ")\n    return CUDA_ERROR_INVALID_VALUE;\n";
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
    os << "return " << getName(&manifest.functions[one.function]) << "("
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
    waits.emplace_back(kernel.waits ? "1" : "0");
  }
  os << "enum { NMS_KERNELS = " << names.size() << " };\n"
     << "static const char *const nms_kernel_names[NMS_KERNELS] = {\n    "
     << llvm::join(names, ",\n    ") << "};\n"
     << "// Whether a kernel may start before the one ahead of it has ended.\n"
     << "static const unsigned char nms_kernel_waits[NMS_KERNELS] = {"
     << llvm::join(waits, ", ") << "};\n\n"
     << getCSupport() << "\nint " << stem
     << "_prepare(void) { return nms_prepare(); }\n";
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
  SourceWriter writer(manifest, stem);
  if (llvm::Error error = writer.check())
    return std::move(error);
  CSource result;
  result.source = writer.writeSource(image);
  result.header = writer.writeHeader();
  return result;
}
