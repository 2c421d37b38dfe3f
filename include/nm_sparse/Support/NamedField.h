//===- NamedField.h - members of a struct by name ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_NAMEDFIELD_H
#define NM_SPARSE_SUPPORT_NAMEDFIELD_H

namespace mlir::nm_sparse {

/// A member of a struct of numbers, by its name.
template <typename T>
struct NamedField {
  const char *name;
  double T::*field;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_NAMEDFIELD_H
