//===- Passes.h - registration of the nm_sparse conversions -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_PASSES_H
#define NM_SPARSE_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::nm_sparse {

#define GEN_PASS_DECL
#include "nm_sparse/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nm_sparse/Conversion/Passes.h.inc"

/// Tells upstream's conversions to LLVM about the nm_tile operations that are
/// left in a thread's code.
void registerConvertTileToLLVMInterface(DialectRegistry &registry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_PASSES_H
