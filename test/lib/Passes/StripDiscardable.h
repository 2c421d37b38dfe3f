//===- StripDiscardable.h - without discardable attributes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TEST_PASSES_STRIPDISCARDABLE_H
#define NM_SPARSE_TEST_PASSES_STRIPDISCARDABLE_H

namespace mlir::nm_test {

/// Registers --test-strip-discardable.
void registerStripDiscardablePass();

} // namespace mlir::nm_test

#endif // NM_SPARSE_TEST_PASSES_STRIPDISCARDABLE_H
