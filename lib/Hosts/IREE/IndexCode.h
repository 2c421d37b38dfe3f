//===- IndexCode.h - expressions of a manifest as MLIR text -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_IREE_INDEXCODE_H
#define NM_SPARSE_LIB_HOSTS_IREE_INDEXCODE_H

#include "nm_sparse/Base/Expression.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace mlir::nm_sparse {

/// Writes operations of `arith` on values of type index, each of them once.
class IndexCode {
public:
  /// Gives the value of a quantity, for which it may write operations.
  using Reader = std::function<std::string(const nms::Quantity &)>;

  IndexCode(llvm::raw_ostream &os, llvm::StringRef indent, Reader read)
      : os(os), indent(indent), read(std::move(read)) {}

  std::string write(const nms::Expression &expression);
  std::string write(int64_t number);
  /// The value as an i32.
  std::string writeInt32(const nms::Expression &expression);
  /// The result of `operation`, which is written unless it was before.
  std::string define(const std::string &operation);

private:
  llvm::raw_ostream &os;
  llvm::StringRef indent;
  Reader read;
  std::map<std::string, std::string> known; ///< Operations and their results.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_IREE_INDEXCODE_H
