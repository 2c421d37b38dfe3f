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
  /// Those that callers see: the others are cases of one.
  bool isCase(const ManifestFunction &function) const {
    int number = &function - manifest.functions.data();
    return llvm::any_of(manifest.functions, [&](const ManifestFunction &other) {
      return llvm::any_of(other.cases, [&](const ManifestCase &one) {
        return one.function == number;
      });
    });
  }

  const Manifest &manifest;
  StringRef stem;
  KernelNumbers kernels;
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
    for (const ManifestFunction &other : manifest.functions)
      if (!isCase(other) && (function.name == getWorkspaceName(other) ||
                             function.name == getWithWorkspaceName(other)))
        return makeError("@{0} has the name of a function that comes with "
                         "@{1}: give one of them another name",
                         function.name, other.name);
    if (llvm::Error error =
            checkResults(function, getSelected(manifest, function)))
      return error;
  }
  return llvm::Error::success();
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
      writeCFunctions(os, manifest, function, kernels);
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
     << stem
     << "_prepare().\n"
        "//\n"
        "// With F come F_with_workspace, which takes the memory between its\n"
        "// kernels from the caller, where F takes it from the stream's pool, "
        "and\n"
        "// F_workspace, which gives the bytes of it: 0 for none, SIZE_MAX "
        "for\n"
        "// sizes that F refuses. Fewer tokens may need more bytes. It begins "
        "at "
        "a\n"
        "// multiple of 256 bytes, may have any contents, and is the call's "
        "until\n"
        "// its kernels have ended: calls in one stream may share it.\n\n"
        "#ifndef "
     << guard << "\n#define " << guard
     << "\n\n#include <cuda.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "// Loads the kernels, which the first call of any function does, "
        "too.\n"
        "int "
     << stem << "_prepare(void);\n";
  for (const ManifestFunction &function : manifest.functions) {
    if (isCase(function))
      continue;
    os << "\n";
    writeCDeclarations(os, manifest, function);
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
