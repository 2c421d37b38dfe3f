//===- Costs.cpp - register what each product costs -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Products/Registration.h"

#include "mlir/IR/DialectRegistry.h"

void mlir::nm_sparse::registerProductCosts(DialectRegistry &registry) {
  registerDotCost(registry);
  registerPanelDotCost(registry);
  registerSimtCost(registry);
  registerMmaCost(registry);
  registerWgmmaCost(registry);
  registerWgmmaExpandCost(registry);
  registerWgmmaSpCost(registry);
  registerMmaExpandCost(registry);
  registerMmaSpCost(registry);
  registerImmediateCost(registry);
}
