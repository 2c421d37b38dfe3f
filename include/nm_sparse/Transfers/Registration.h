//===- Registration.h - the transfers of this compiler ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_REGISTRATION_H
#define NM_SPARSE_TRANSFERS_REGISTRATION_H

namespace mlir {
class DialectRegistry;

namespace nm_sparse {

/// Adds all transfers of this build (NM_SPARSE_TRANSFERS) to the nm_tile
/// dialect. The schedules that products propose name them.
void registerTransfers(DialectRegistry &registry);

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_TRANSFERS_REGISTRATION_H
