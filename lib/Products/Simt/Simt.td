//===- Simt.td - FFMA on the CUDA cores --------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_SIMT_SIMT_TD
#define NM_SPARSE_PRODUCTS_SIMT_SIMT_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_SimtAttr : NMTile_Attr<"Simt", "simt",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getRingUse"]>]> {
  let summary = "FFMA on the CUDA cores";
  let description = [{
    Multiplies f32. The lanes of a warp cover its share of the tile as a grid of
    8 x 4.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 32 in all; a multiple of 8 tokens and 4 outputs for each | must be given |
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // NM_SPARSE_PRODUCTS_SIMT_SIMT_TD
