//===- Passes.td - nm_sparse transformations ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFORMS_PASSES_TD
#define NM_SPARSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

include "nm_sparse/Dialect/NMSparse/Transforms/LayerPasses.td"
include "nm_sparse/Dialect/NMSparse/Transforms/SchedulePasses.td"
include "nm_sparse/Dialect/NMSparse/Transforms/PipelinePasses.td"
include "nm_sparse/Dialect/NMSparse/Transforms/ExitPasses.td"

#endif // NM_SPARSE_TRANSFORMS_PASSES_TD
