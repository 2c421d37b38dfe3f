//===- Passes.td - from a matmul to roles and rings *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PASSES_TD
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

include "nm_sparse/Dialect/NMTile/Transforms/StoragePasses.td"
include "nm_sparse/Dialect/NMTile/Transforms/SchedulePasses.td"
include "nm_sparse/Dialect/NMTile/Transforms/TilingPasses.td"
include "nm_sparse/Dialect/NMTile/Transforms/PipelinePasses.td"
include "nm_sparse/Dialect/NMTile/Transforms/LaunchPasses.td"

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PASSES_TD
