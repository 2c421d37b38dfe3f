//===- Programs.h - programs as functions of IREE ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_IREE_PROGRAMS_H
#define NM_SPARSE_LIB_HOSTS_IREE_PROGRAMS_H

#include "Executable.h"

namespace mlir::nm_sparse {

/// The type of an array of a manifest: tensor<?x4096xf16>.
std::string writeTensorType(const nms::ManifestType &type);

/// A program with weights of its own.
struct ProgramInstance {
  const nms::ManifestFunction *program = nullptr;
  std::string suffix; ///< Ends the names of its functions.
  /// The globals that hold components of weights, by argument; others are
  /// arguments.
  std::map<unsigned, std::string> globals;
};

/// Writes the functions of `instances`, named `prefix`, their own name and the
/// suffix, whose launches are dispatches of `executable`. What depends on
/// globals alone is computed once, when the module is initialized.
llvm::Error writePrograms(llvm::raw_ostream &os, const nms::Manifest &manifest,
                          llvm::StringRef prefix,
                          llvm::ArrayRef<ProgramInstance> instances,
                          Executable &executable);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_IREE_PROGRAMS_H
