//===- TensorFile.h - files of named tensors --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads safetensors: a length of 8 bytes, a JSON header that says where each
// tensor lies, and the tensors. Files come from strangers, so everything that
// the header says is checked before it is believed, and nothing in a file can
// run. An error names file, tensor, what was found and what is legal.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHECKPOINT_TENSORFILE_H
#define NM_SPARSE_CHECKPOINT_TENSORFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::nm_sparse {

/// An element type.
struct StoredType {
  llvm::StringLiteral name; ///< As files spell it.
  int64_t bits;
  llvm::StringLiteral element; ///< As MLIR spells it; empty: no weight has it.
};

/// The type that files spell so, or null.
const StoredType *findStoredType(llvm::StringRef name);

/// The type of weights that MLIR spells so, or null.
const StoredType *findElementType(llvm::StringRef element);
/// Returns MLIR's names of all of those.
llvm::SmallVector<llvm::StringRef> getElementTypes();

/// A tensor of a file; `data` lives as long as that.
struct TensorInfo {
  std::string name;
  const StoredType *type;
  llvm::SmallVector<int64_t, 2> shape;
  llvm::ArrayRef<char> data;
};

class TensorFile {
public:
  /// Maps a file into memory and reads its header.
  static llvm::Expected<TensorFile> open(llvm::StringRef path);
  /// The same of a file in memory, whose identifier is its path.
  static llvm::Expected<TensorFile>
  read(std::unique_ptr<llvm::MemoryBuffer> buffer);

  llvm::StringRef getPath() const { return buffer->getBufferIdentifier(); }
  /// In the order of their bytes.
  llvm::ArrayRef<TensorInfo> getTensors() const { return tensors; }
  /// Text that is stored beside the tensors.
  const llvm::StringMap<std::string> &getMetadata() const { return metadata; }

private:
  llvm::Error readHeader(llvm::StringRef header, llvm::ArrayRef<char> data);

  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<TensorInfo> tensors;
  llvm::StringMap<std::string> metadata;
};

/// A tensor to write.
struct TensorSpec {
  std::string name;
  const StoredType *type;
  llvm::SmallVector<int64_t> shape;

  int64_t getBytes() const;
};

/// The beginning of a file.
struct TensorFileHeader {
  std::string bytes; ///< All that comes before the tensors.
  /// The offset of each tensor in the file, in the order of the specs.
  llvm::SmallVector<uint64_t> offsets;
};

/// Makes a header for `tensors`, whose names are unique. Those of wide elements
/// come first, which aligns all of them, then they are in the order of names.
TensorFileHeader
makeTensorFileHeader(llvm::ArrayRef<TensorSpec> tensors,
                     const llvm::StringMap<std::string> &metadata);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHECKPOINT_TENSORFILE_H
