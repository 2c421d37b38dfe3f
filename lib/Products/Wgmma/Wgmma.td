//===- Wgmma.td - products of warpgroups on tensor cores ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WGMMA_WGMMA_TD
#define NM_SPARSE_PRODUCTS_WGMMA_WGMMA_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_WgmmaAttr : NMTile_Attr<"Wgmma", "wgmma",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getSumOwners",
         "getRingUse"]>]> {
  let summary = "products of warpgroups on tensor cores";
  let description = [{
    Multiplies f16 and bf16 on sm_90a, and sums in f32. Four warps along outputs form
    a warpgroup, which multiplies 64, 128, 192 or 256 tokens by a multiple of 64
    outputs. The 64 outputs of an instruction read the same rows, so panels must be
    a multiple of 64 outputs.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 32 in all; outputs a multiple of 4; at most 192 accumulators a thread | must be given |
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Tokens and outputs of one warpgroup of `schedule`, which has this product.
    int64_t getWarpgroupTokens(ScheduleAttr schedule) const;
    int64_t getWarpgroupOutputs(ScheduleAttr schedule) const;
  }];
}

#endif // NM_SPARSE_PRODUCTS_WGMMA_WGMMA_TD
