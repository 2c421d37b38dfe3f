//===- Registration.cpp - add the products to a registry ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products.def lists the products that this build has. Each defines two
// functions, register<Product>Cost and register<Product>Lowering, which attach
// the interfaces of the cost model and of code generation to its attribute.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Products/Registration.h"

#include "ProductAttrs.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// The dialect parses and prints these attributes by their own functions, not by
// those that TableGen makes of all in one file.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#define GET_ATTRDEF_CLASSES
#include "Products/ProductAttrs.cpp.inc"
#pragma clang diagnostic pop

void nm_sparse::registerProducts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, NMTileDialect *dialect) {
    dialect->addExternalAttributes<
#define GET_ATTRDEF_LIST
#include "Products/ProductAttrs.cpp.inc"
        >();
  });
#define NM_SPARSE_PRODUCT(Product)                                             \
  register##Product##Cost(registry);                                           \
  register##Product##Lowering(registry);
#include "Products/Products.def"
#undef NM_SPARSE_PRODUCT
}
