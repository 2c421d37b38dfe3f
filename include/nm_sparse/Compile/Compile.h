//===- Compile.h - what nm-compile does, as a function ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tool and the C interface (nm_sparse-c/Compiler.h) are this function with
// files and streams, or with memory, around it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_COMPILE_COMPILE_H
#define NM_SPARSE_COMPILE_COMPILE_H

#include "nm_sparse/Support/OutputFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// What surrounds the compiler.
struct CompileHost {
  /// What people asked to read.
  llvm::raw_ostream *out = &llvm::outs();
  /// Errors and warnings, and what people asked to read where standard output
  /// is for a result.
  llvm::raw_ostream *err = &llvm::errs();
  /// The program that the input `-` stands for; none: standard input.
  std::optional<llvm::StringRef> program;
  /// Files are collected here by the names that options give them; null: they
  /// are written.
  std::map<std::string, std::string> *files = nullptr;

  /// A file of `contents` that is there when `keep` is called.
  llvm::Expected<OutputFile> createFile(llvm::StringRef path,
                                        std::string contents) const {
    return files ? OutputFile::createIn(*files, path, std::move(contents))
                 : OutputFile::create(path, std::move(contents));
  }
};

/// Does what `nm-compile ARGUMENTS` does, and returns its exit status: 0, 1 for
/// what cannot be compiled, 2 for a wrong use. Errors are on `host.err`, with
/// `nm-compile: ` before them.
int runCompiler(llvm::ArrayRef<const char *> arguments,
                const CompileHost &host);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_COMPILE_COMPILE_H
