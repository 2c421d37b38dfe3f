//===- FindFiles.h - the files of a checkpoint ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CHECKPOINT_FINDFILES_H
#define NM_SPARSE_LIB_CHECKPOINT_FINDFILES_H

#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace mlir::nm_sparse {

/// The file to read first of a checkpoint at `path`: one with tensors, or an
/// index of several, which ends in ".json". Pickles are refused.
llvm::Expected<std::string> findFirstFile(llvm::StringRef path);

/// The name of the file that each tensor is in, by the name of the tensor. All
/// are in the folder of the index.
llvm::Expected<std::map<std::string, std::string>>
readIndex(llvm::StringRef path);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CHECKPOINT_FINDFILES_H
