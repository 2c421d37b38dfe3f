//===- PanelDot.td - few tokens, panels from memory ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_PANELDOT_PANELDOT_TD
#define NM_SPARSE_PRODUCTS_PANELDOT_PANELDOT_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_PanelDotAttr : NMTile_Attr<"PanelDot", "panel_dot",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getSumOwners"]>]> {
  let summary = "few tokens, panels of outputs from memory to registers";
  let description = [{
    Like `dot`, this product is for decoding, but for weights with panels of outputs
    that share rows. A lane owns as many outputs of one panel as 16 bytes hold. It
    reads them at once, and one position finds the activation that multiplies all
    of them. A group of lanes covers the outputs of the tile. `shares` groups divide
    the rows of a K step, and add their sums in the end. Reads values and positions,
    of f16, bf16 or f32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps of the CTA | 1 to 32 | must be given |
    | `shares` | groups of lanes that divide a K step | any number for which a group has 1, 2, 4, 8, 16 or 32 lanes, and a lane 16 bytes of outputs | must be given |
  }];
  let parameters = (ins "int64_t":$warps, "int64_t":$shares);
  let assemblyFormat = "`<` `warps` `=` $warps `,` `shares` `=` $shares `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Lanes of a group, which cover the outputs of a tile.
    int64_t getGroupLanes() const { return getWarps() * 32 / getShares(); }
  }];
}

#endif // NM_SPARSE_PRODUCTS_PANELDOT_PANELDOT_TD
