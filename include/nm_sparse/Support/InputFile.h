//===- InputFile.h - files that our tools read ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_INPUTFILE_H
#define NM_SPARSE_SUPPORT_INPUTFILE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include <memory>
#include <string>

namespace mlir::nm_sparse {

/// The most bytes that are read from a pipe or a device, which may have no end.
inline constexpr size_t kMostStreamBytes = size_t(1) << 30;

/// All of `path`; "-" is standard input. The error is a sentence that names it.
inline llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(llvm::StringRef path) {
  auto fail = [&](const std::string &why) {
    return llvm::createStringError("cannot read " + path.str() + ": " + why);
  };
  llvm::sys::fs::file_status status;
  bool isStream = path == "-" || (!llvm::sys::fs::status(path, status) &&
                                  !llvm::sys::fs::is_regular_file(status) &&
                                  !llvm::sys::fs::is_directory(status));
  if (!isStream) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (std::error_code code = buffer.getError())
      return fail(code.message());
    return std::move(*buffer);
  }
  llvm::sys::fs::file_t file = llvm::sys::fs::getStdinHandle();
  if (path != "-") {
    auto opened = llvm::sys::fs::openNativeFileForRead(path);
    if (!opened)
      return fail(llvm::toString(opened.takeError()));
    file = *opened;
  }
  llvm::SmallVector<char, 0> bytes;
  std::string problem;
  while (problem.empty()) {
    constexpr size_t chunk = 1 << 16;
    size_t size = bytes.size();
    bytes.resize_for_overwrite(size + chunk);
    auto count = llvm::sys::fs::readNativeFile(
        file, llvm::MutableArrayRef(bytes).drop_front(size));
    if (!count)
      problem = llvm::toString(count.takeError());
    bytes.truncate(size + (problem.empty() ? *count : 0));
    if (problem.empty() && *count == 0)
      break;
    if (bytes.size() > kMostStreamBytes)
      problem = "it has no end within " + std::to_string(kMostStreamBytes) +
                " bytes; legal is that much of a pipe or a device, or a file";
  }
  if (path != "-")
    llvm::consumeError(llvm::errorCodeToError(llvm::sys::fs::closeFile(file)));
  if (!problem.empty())
    return fail(problem);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), path == "-" ? "<stdin>" : path);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_INPUTFILE_H
