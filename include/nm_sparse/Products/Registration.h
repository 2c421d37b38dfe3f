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

/// Adds all products of this build to the nm_tile dialect: their attributes,
/// what they cost, the schedules that they propose (in the order of
/// NM_SPARSE_PRODUCTS), and how they become the code of threads.
void registerProducts(DialectRegistry &registry);

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_PRODUCTS_REGISTRATION_H
