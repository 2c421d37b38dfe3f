//===- Whole.h - all values before the K loop -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_TRANSFERS_WHOLE_H
#define NM_TEST_TRANSFERS_WHOLE_H

namespace mlir {
class DialectRegistry;

namespace nm_test {

/// Registers the dialect of the transfers that only tests use.
void registerTestTransfers(DialectRegistry &registry);

} // namespace nm_test
} // namespace mlir

#endif // NM_TEST_TRANSFERS_WHOLE_H
