//===- WgmmaRs.td - activations from registers -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WGMMARS_WGMMARS_TD
#define NM_SPARSE_PRODUCTS_WGMMARS_WGMMARS_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_WgmmaRsAttr : NMTile_Attr<"WgmmaRs", "wgmma_rs",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getRingUse"]>]> {
  let summary = "products of warpgroups with activations from registers";
  let description = [{
    Multiplies f8E4M3FN, f8E5M2 and i8 on sm_90a by panels of a multiple of 64
    outputs, whose weight is stored as `#nm_sparse.k_major`. Tensor cores read
    operands of 8 bits along the contraction alone. Values are stored so, and lie so
    in shared memory. Gathered rows of feature-major activations are not:
    `ldmatrix.trans` brings pairs of tokens to the lanes, which put the bytes of each
    token together and give them to `wgmma` as its first operand, from registers.

    Sums are f32; for 8-bit floats, tensor cores keep 13 bits of them behind the
    point. For i8, sums are i32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 28 in all; tokens a multiple of the 4 of a warpgroup, each of which multiplies a multiple of 64 tokens by a multiple of 64 outputs, at most 256, with at most 192 accumulators a thread | must be given |
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

#endif // NM_SPARSE_PRODUCTS_WGMMARS_WGMMARS_TD
