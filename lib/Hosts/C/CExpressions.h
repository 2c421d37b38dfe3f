//===- CExpressions.h - expressions of a manifest in C ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_C_CEXPRESSIONS_H
#define NM_SPARSE_LIB_HOSTS_C_CEXPRESSIONS_H

#include "CFunction.h"

namespace mlir::nm_sparse {

/// Writes expressions over the arguments and buffers of one function. Arrays of
/// callers lie row by row without gaps, as buffers do.
class CExpressions {
public:
  CExpressions(const nms::ManifestFunction &function,
               const CSignature &signature)
      : function(function), signature(signature) {}

  std::string write(const nms::Expression &expression) const;
  /// Sizes and strides, in elements, of `view`, or of all of `source`.
  std::vector<std::string>
  writeSizes(const nms::ManifestSource &source,
             const std::optional<nms::ManifestView> &view) const;
  std::vector<std::string>
  writeStrides(const nms::ManifestSource &source,
               const std::optional<nms::ManifestView> &view) const;

private:
  std::string write(const nms::Quantity &quantity) const;
  std::string writeSize(const nms::ManifestSource &source, int64_t dim) const;
  std::string writeStride(const nms::ManifestSource &source, int64_t dim) const;
  int64_t getRank(const nms::ManifestSource &source) const;

  const nms::ManifestFunction &function;
  const CSignature &signature;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_C_CEXPRESSIONS_H
