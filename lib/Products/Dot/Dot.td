//===- Dot.td - few tokens, weights from memory to registers -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_DOT_DOT_TD
#define NM_SPARSE_PRODUCTS_DOT_DOT_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_DotAttr : NMTile_Attr<"Dot", "dot",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getSumOwners"]>]> {
  let summary = "few tokens, weights from memory to registers";
  let description = [{
    This product is for decoding, where each weight is used once. A lane owns an
    output. The warps divide the rows of the weight among them, read their rows
    from global memory as they are stored, and add their partial sums in the end.
    The weight is stored as bitmaps, of any type. Weights of 8 bits use this
    product for any number of tokens, since no other one supports them. With `free`
    weights, a tile has as many rows as a K step has in the dense weight, a multiple
    of 256; segments of 64 values of each output are distributed over the warps of
    all steps.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps that divide the contraction | 1 to 32 | must be given |
  }];
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` `warps` `=` $warps `>`";
  let genVerifyDecl = 1;
}

#endif // NM_SPARSE_PRODUCTS_DOT_DOT_TD
