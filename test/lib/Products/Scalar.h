//===- Scalar.h - the shortest product --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_PRODUCTS_SCALAR_H
#define NM_TEST_PRODUCTS_SCALAR_H

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "Products/ScalarDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Products/ScalarAttrs.h.inc"

namespace mlir::nm_test {

/// Registers the dialect of the products that only tests use.
void registerTestProducts(DialectRegistry &registry);

} // namespace mlir::nm_test

#endif // NM_TEST_PRODUCTS_SCALAR_H
