//===- OutputFile.h - files that our tools write ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_OUTPUTFILE_H
#define NM_SPARSE_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// Resolves the links of `path`, also to a file that does not exist yet.
inline std::filesystem::path followLinks(llvm::StringRef path) {
  constexpr int mostLinks = 40;
  std::filesystem::path target = path.str();
  std::error_code code;
  for (int i = 0; i < mostLinks && std::filesystem::is_symlink(target, code);
       ++i)
    target = target.parent_path() / std::filesystem::read_symlink(target, code);
  std::filesystem::path whole = std::filesystem::weakly_canonical(target, code);
  return code ? target : whole;
}

/// Returns true if both name one file, which may not exist yet: writing one
/// would lose the other.
inline bool isSameFile(llvm::StringRef a, llvm::StringRef b) {
  if (a == "-" || b == "-")
    return false;
  bool isSame = false;
  if (!llvm::sys::fs::equivalent(a, b, isSame))
    return isSame;
  return followLinks(a) == followLinks(b);
}

/// A file that appears under its name only when `keep` is called, whole.
/// Standard output (-), devices and pipes are written to, then, and never
/// replaced; links are followed.
class OutputFile {
public:
  static llvm::Expected<OutputFile> create(llvm::StringRef path,
                                           std::string contents) {
    OutputFile file;
    file.path = path.str();
    file.contents = std::move(contents);
    if (!isPlain(path))
      return file;
    if (llvm::Error error =
            file.writeTemporary([&](llvm::raw_fd_ostream &stream) {
              stream << file.contents;
              return llvm::Error::success();
            }))
      return error;
    return file;
  }

  /// The same for the output of `write`, which may write in any order: only a
  /// plain file allows that.
  static llvm::Expected<OutputFile>
  createPlain(llvm::StringRef path,
              llvm::function_ref<llvm::Error(llvm::raw_fd_ostream &)> write) {
    OutputFile file;
    file.path = path.str();
    if (!isPlain(path))
      return file.getError("legal is a plain file");
    if (llvm::Error error = file.writeTemporary(write))
      return error;
    return file;
  }

  /// An entry of `files`, made when `keep` is called.
  static OutputFile createIn(std::map<std::string, std::string> &files,
                             llvm::StringRef path, std::string contents) {
    OutputFile file;
    file.path = path.str();
    file.contents = std::move(contents);
    file.files = &files;
    return file;
  }

  llvm::Error keep() {
    if (files) {
      (*files)[path] = std::move(contents);
      return llvm::Error::success();
    }
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
    stream << contents;
    return finish(stream);
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

  /// Returns true if nothing exists under this name, or a file that may be
  /// replaced.
  static bool isPlain(llvm::StringRef path) {
    llvm::sys::fs::file_status status;
    bool exists = !llvm::sys::fs::status(path, status);
    return path != "-" && (!exists || llvm::sys::fs::is_regular_file(status) ||
                           llvm::sys::fs::is_directory(status));
  }

  llvm::Error writeTemporary(
      llvm::function_ref<llvm::Error(llvm::raw_fd_ostream &)> write) {
    if (std::filesystem::path target = followLinks(path); !target.empty())
      path = target.string();
    auto created = llvm::sys::fs::TempFile::create(path + ".tmp%%%%%%");
    if (!created)
      return getError(llvm::toString(created.takeError()));
    temporary = std::move(*created);
    llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    llvm::Error error = write(stream);
    llvm::Error failure = finish(stream);
    if (!error && !failure)
      return llvm::Error::success();
    discard();
    return llvm::joinErrors(std::move(error), std::move(failure));
  }

  /// Returns the error of `stream`, which would otherwise end the program
  /// later.
  llvm::Error finish(llvm::raw_fd_ostream &stream) const {
    stream.flush();
    if (!stream.has_error())
      return llvm::Error::success();
    std::string why = stream.error().message();
    stream.clear_error();
    return getError(why);
  }

  std::string path, contents;
  std::optional<llvm::sys::fs::TempFile> temporary;
  std::map<std::string, std::string> *files = nullptr;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_OUTPUTFILE_H
