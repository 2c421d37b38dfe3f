//===- FileBytes.h - safetensors files in memory ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_CHECKPOINT_FILEBYTES_H
#define NM_SPARSE_UNITTESTS_CHECKPOINT_FILEBYTES_H

#include "nm_sparse/Checkpoint/TensorFile.h"
#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"

namespace mlir::nm_sparse {

inline constexpr llvm::StringLiteral kFileName = "x.safetensors";

/// A file of this header and data; `length` stands before the header.
inline std::string makeFile(llvm::StringRef header, llvm::StringRef data,
                            uint64_t length) {
  std::string bytes(8, '\0');
  llvm::support::endian::write64le(bytes.data(), length);
  return bytes + header.str() + data.str();
}
inline std::string makeFile(llvm::StringRef header, llvm::StringRef data = "") {
  return makeFile(header, data, header.size());
}

inline llvm::Expected<TensorFile> readFile(llvm::StringRef bytes) {
  return TensorFile::read(
      llvm::MemoryBuffer::getMemBufferCopy(bytes, kFileName));
}

/// The error of reading `bytes`; empty if there is none.
inline std::string getError(llvm::StringRef bytes) {
  auto file = readFile(bytes);
  return file ? "" : llvm::toString(file.takeError());
}

inline testing::AssertionResult contains(llvm::StringRef text,
                                         llvm::StringRef part) {
  if (text.contains(part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << part.str() << "' is not in '" << text.str() << "'";
}

/// Succeeds if `text` is an error of a file of this name.
inline testing::AssertionResult isOfFile(llvm::StringRef text) {
  if (text.starts_with(kFileName.str() + ": "))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << text.str() << "' does not begin with the file";
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_UNITTESTS_CHECKPOINT_FILEBYTES_H
