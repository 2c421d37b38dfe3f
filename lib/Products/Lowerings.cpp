//===- Lowerings.cpp - register how each product becomes code -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Products/Registration.h"

#include "mlir/IR/DialectRegistry.h"

void mlir::nm_sparse::registerProductLowerings(DialectRegistry &registry) {
  registerDotLowering(registry);
  registerPanelDotLowering(registry);
  registerSimtLowering(registry);
  registerMmaLowering(registry);
  registerWgmmaLowering(registry);
  registerWgmmaExpandLowering(registry);
  registerWgmmaSpLowering(registry);
  registerMmaExpandLowering(registry);
  registerMmaSpLowering(registry);
  registerImmediateLowering(registry);
}
