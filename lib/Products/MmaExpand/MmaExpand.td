//===- MmaExpand.td - few tokens, weights expanded for mma -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_MMAEXPAND_MMAEXPAND_TD
#define NM_SPARSE_PRODUCTS_MMAEXPAND_MMAEXPAND_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_MmaExpandAttr : NMTile_Attr<"MmaExpand", "mma_expand",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getSumOwners"]>]> {
  let summary = "few tokens, weights expanded in registers for tensor cores";
  let description = [{
    This product is for batches of a few tokens: their weights come from memory
    once, but are multiplied too often for `dot`. A lane reads values and bits of
    whole windows from global memory and expands them to dense fragments in
    registers. `mma.sync` multiplies these by activations, which each lane reads for
    its own rows. No tile is in shared memory. The weight is stored as bitmaps, of
    f16, bf16 or 8 bits: i8, or f8E4M3FN and f8E5M2 on sm_89 and newer.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps of a CTA | 1 to 32 | must be given |
    | `shares` | groups of warps that divide the contraction, and add their sums in the end. The warps of a group divide the outputs of the tile, 32 for each; every warp has all 8, 16, 32 or 64 tokens of the tile | a divisor of `warps` | 1 |
  }];
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"int64_t", "1">:$shares);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of values that a lane may read of each of its outputs at once, which
    /// registers hold; and of rows that it expands to, all in straight code.
    static constexpr int64_t kMostValueBytes = 128, kMostRowBytes = 512;

    /// Warps that divide the outputs of a tile.
    int64_t getOutputWarps() const { return getWarps() / getShares(); }
  }];
}

#endif // NM_SPARSE_PRODUCTS_MMAEXPAND_MMAEXPAND_TD
