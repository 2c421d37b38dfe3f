//===- PackChecks.h - what a host checks of packed weights ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TARGET_PACKCHECKS_H
#define NM_SPARSE_LIB_TARGET_PACKCHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"
#include <array>
#include <optional>
#include <vector>

namespace mlir::nm_sparse {

/// A kernel that packs a weight leaves what it finds in a word of device
/// memory, and the host looks at the word behind all launches.
struct PackCheck {
  Value found; ///< The word: a buffer that is -1 before the launches.
  func::CallOp call;
  std::array<int64_t, 5> numbers; ///< n, m, batch, windows, panels.
  /// The host's operations for the check, the call included.
  SmallVector<Operation *> ops;
};

/// The checks of `function` that --nm-sparse-lower-device-pack made and that
/// still are as --nm-sparse-insert-device-copies leaves them, in the order of
/// their calls.
std::vector<PackCheck> findPackChecks(func::FuncOp function);

/// An entry of `checks` of the manifest, with the name of the word.
llvm::json::Object describePackCheck(const PackCheck &check,
                                     const std::string &buffer);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TARGET_PACKCHECKS_H
