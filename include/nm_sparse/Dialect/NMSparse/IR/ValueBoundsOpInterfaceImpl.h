//===- ValueBoundsOpInterfaceImpl.h - sizes of results ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_VALUEBOUNDSOPINTERFACEIMPL_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_VALUEBOUNDSOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;

namespace nm_sparse {
/// Lets upstream's analysis of bounds see through the operations of nm_sparse
/// that have results of dynamic size.
void registerValueBoundsOpInterfaceExternalModels(DialectRegistry &registry);
} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_VALUEBOUNDSOPINTERFACEIMPL_H
