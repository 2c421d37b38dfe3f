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
         "verifyProblem", "readsBitmaps", "dividesContraction",
         "getNumShares"]>]> {
  let summary = "few tokens, weights from memory to registers";
  let description = [{
    For decoding, where each weight is used once. A lane owns an output, and each
    warp takes every so many rows of the weight, which it reads from global memory
    as they are stored; in the end the warps add their shares. Reads weights that
    are stored as bitmaps, of any type; of 8 bits for any number of tokens, since
    no other product does. Of `free` weights a tile has as
    many rows as a K step has in the dense weight, a multiple of 256: segments of 64
    values of each output are dealt out to the warps of all steps.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | that divide the contraction | 1 to 32 | must be given |
  }];
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` `warps` `=` $warps `>`";
  let genVerifyDecl = 1;
}

#endif // NM_SPARSE_PRODUCTS_DOT_DOT_TD
