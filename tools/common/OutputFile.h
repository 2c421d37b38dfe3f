//===- OutputFile.h - files that our tools write ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOOLS_COMMON_OUTPUTFILE_H
#define NM_SPARSE_TOOLS_COMMON_OUTPUTFILE_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// Whether both name one file that exists: writing one would lose the other.
inline bool isSameFile(llvm::StringRef a, llvm::StringRef b) {
  bool isSame = false;
  return a != "-" && b != "-" && !llvm::sys::fs::equivalent(a, b, isSame) &&
         isSame;
}

/// A file that appears under its name only when `keep` is called, whole.
/// Standard output (-), devices and pipes are written to, then, and never
/// replaced; links to what exists are followed.
class OutputFile {
public:
  static llvm::Expected<OutputFile> create(llvm::StringRef path,
                                           std::string contents) {
    OutputFile file;
    file.path = path.str();
    file.contents = std::move(contents);
    llvm::sys::fs::file_status status;
    bool exists = !llvm::sys::fs::status(path, status);
    if (path == "-" || (exists && !llvm::sys::fs::is_regular_file(status) &&
                        !llvm::sys::fs::is_directory(status)))
      return file;
    llvm::SmallString<128> target;
    if (!llvm::sys::fs::real_path(path, target))
      file.path = target.str().str();
    auto temporary = llvm::sys::fs::TempFile::create(file.path + ".tmp%%%%%%");
    if (!temporary)
      return file.getError(llvm::toString(temporary.takeError()));
    file.temporary = std::move(*temporary);
    if (llvm::Error error = file.write(file.temporary->FD)) {
      file.discard();
      return error;
    }
    return file;
  }

  llvm::Error keep() {
    if (temporary) {
      if (llvm::Error error = temporary->keep(path))
        return getError(llvm::toString(std::move(error)));
      return llvm::Error::success();
    }
    llvm::outs().flush();
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code, llvm::sys::fs::CD_OpenExisting);
    if (code)
      return getError(code.message());
    return write(stream);
  }

  void discard() {
    if (temporary)
      llvm::consumeError(temporary->discard());
    temporary.reset();
  }

private:
  llvm::Error getError(const std::string &why) const {
    return llvm::createStringError("cannot write " + path + ": " + why);
  }

  llvm::Error write(int descriptor) const {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
    return write(stream);
  }

  llvm::Error write(llvm::raw_fd_ostream &stream) const {
    stream << contents;
    stream.flush();
    if (!stream.has_error())
      return llvm::Error::success();
    std::string why = stream.error().message();
    stream.clear_error();
    return getError(why);
  }

  std::string path, contents;
  std::optional<llvm::sys::fs::TempFile> temporary;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TOOLS_COMMON_OUTPUTFILE_H
