//===- Distances.h - positions as distances ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_STORAGES_DISTANCES_H
#define NM_TEST_STORAGES_DISTANCES_H

namespace mlir {
class DialectRegistry;

namespace nm_test {

/// Registers the dialect of the storages that only tests use.
void registerTestStorages(DialectRegistry &registry);

} // namespace nm_test
} // namespace mlir

#endif // NM_TEST_STORAGES_DISTANCES_H
