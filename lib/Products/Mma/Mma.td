//===- Mma.td - fragments on tensor cores, by mma.sync ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_MMA_MMA_TD
#define NM_SPARSE_PRODUCTS_MMA_MMA_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_MmaAttr : NMTile_Attr<"Mma", "mma",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getRingUse"]>]> {
  let summary = "fragments on tensor cores, by mma.sync";
  let description = [{
    Multiplies f16 and bf16 in fragments of 16 x 8, sums in f32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 32 in all; a multiple of 16 tokens and 8 outputs for each | must be given |
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // NM_SPARSE_PRODUCTS_MMA_MMA_TD
