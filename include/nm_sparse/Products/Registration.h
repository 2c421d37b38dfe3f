//===- Registration.h - the products of this compiler -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_REGISTRATION_H
#define NM_SPARSE_PRODUCTS_REGISTRATION_H

namespace mlir {
class DialectRegistry;

namespace nm_sparse {

/// Attaches to each product what it costs, and adds the schedules that it
/// proposes, in the order in which they are compared.
void registerProductCosts(DialectRegistry &registry);

/// Attaches to each product how it becomes the code of threads.
void registerProductLowerings(DialectRegistry &registry);

// Of single products.
void registerDotCost(DialectRegistry &registry);
void registerPanelDotCost(DialectRegistry &registry);
void registerSimtCost(DialectRegistry &registry);
void registerMmaCost(DialectRegistry &registry);
void registerWgmmaCost(DialectRegistry &registry);
void registerWgmmaExpandCost(DialectRegistry &registry);
void registerWgmmaSpCost(DialectRegistry &registry);
void registerMmaExpandCost(DialectRegistry &registry);
void registerMmaSpCost(DialectRegistry &registry);
void registerImmediateCost(DialectRegistry &registry);
void registerDotLowering(DialectRegistry &registry);
void registerPanelDotLowering(DialectRegistry &registry);
void registerSimtLowering(DialectRegistry &registry);
void registerMmaLowering(DialectRegistry &registry);
void registerWgmmaLowering(DialectRegistry &registry);
void registerWgmmaExpandLowering(DialectRegistry &registry);
void registerWgmmaSpLowering(DialectRegistry &registry);
void registerMmaExpandLowering(DialectRegistry &registry);
void registerMmaSpLowering(DialectRegistry &registry);
void registerImmediateLowering(DialectRegistry &registry);

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_PRODUCTS_REGISTRATION_H
