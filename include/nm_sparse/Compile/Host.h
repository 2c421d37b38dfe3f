//===- Host.h - what the compiler reads and writes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_COMPILE_HOST_H
#define NM_SPARSE_COMPILE_HOST_H

#include "nm_sparse/Support/OutputFile.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// The environment of the compiler.
struct CompileHost {
  /// The stream for output that the user asked for.
  llvm::raw_ostream *out = &llvm::outs();
  /// Errors and warnings, and the output that the user asked for if standard
  /// output takes a result.
  llvm::raw_ostream *err = &llvm::errs();
  /// The program that the input `-` stands for; none: standard input.
  std::optional<llvm::StringRef> program;
  /// The folder of databases of measured schedules, one for each GPU, that are
  /// read where the user names none; empty: none are.
  std::string databases;
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

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_COMPILE_HOST_H
