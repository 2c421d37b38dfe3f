//===- Compiler.cpp - the compiler behind a C interface -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse-c/Compiler.h"

#include "nm_sparse/Compile/Compile.h"
#include "nm_sparse/Support/Version.h"

using namespace mlir::nm_sparse;

struct NmSparseOutput {
  int status = 0;
  std::string text, errors;
  std::map<std::string, std::string> files;
};

static const char *give(const std::string &text, size_t *bytes) {
  if (bytes)
    *bytes = text.size();
  return text.c_str();
}

int32_t nmSparseAbiVersion() { return NM_SPARSE_ABI_VERSION; }

const char *nmSparseVersion() {
  static const std::string *version = [] {
    auto *line = new std::string(describeVersion("libnm_sparse"));
    line->pop_back(); // the end of the line
    return line;
  }();
  return version->c_str();
}

NmSparseOutput *nmSparseCompile(const char *const *arguments, int32_t count,
                                const char *program, size_t bytes) {
  auto output = std::make_unique<NmSparseOutput>();
  llvm::raw_string_ostream text(output->text), errors(output->errors);
  CompileHost host;
  host.out = &text;
  host.err = &errors;
  host.program = llvm::StringRef(program ? program : "", program ? bytes : 0);
  host.files = &output->files;
  output->status = runCompiler(
      llvm::ArrayRef<const char *>(arguments, static_cast<size_t>(count)),
      host);
  return output.release();
}

int32_t nmSparseOutputStatus(const NmSparseOutput *output) {
  return output->status;
}

const char *nmSparseOutputText(const NmSparseOutput *output, size_t *bytes) {
  return give(output->text, bytes);
}

const char *nmSparseOutputErrors(const NmSparseOutput *output, size_t *bytes) {
  return give(output->errors, bytes);
}

const char *nmSparseOutputFile(const NmSparseOutput *output, const char *name,
                               size_t *bytes) {
  auto found = output->files.find(name);
  return found == output->files.end() ? nullptr : give(found->second, bytes);
}

void nmSparseOutputDestroy(NmSparseOutput *output) { delete output; }
