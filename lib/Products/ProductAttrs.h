//===- ProductAttrs.h - attributes and parts of all products ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_PRODUCTATTRS_H
#define NM_SPARSE_LIB_PRODUCTS_PRODUCTATTRS_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

#define GET_ATTRDEF_CLASSES
#include "Products/ProductAttrs.h.inc"

namespace mlir::nm_sparse {

// Each product attaches the interfaces of the cost model and of code generation
// to its attribute, and adds what proposes its schedules.
#define NM_SPARSE_PRODUCT(Product)                                             \
  void register##Product##Cost(DialectRegistry &registry);                     \
  void register##Product##Lowering(DialectRegistry &registry);
#include "Products/Products.def"
#undef NM_SPARSE_PRODUCT

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_PRODUCTATTRS_H
