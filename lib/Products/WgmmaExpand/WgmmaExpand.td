//===- WgmmaExpand.td - weights expanded for warpgroups ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WGMMAEXPAND_WGMMAEXPAND_TD
#define NM_SPARSE_PRODUCTS_WGMMAEXPAND_WGMMAEXPAND_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_WgmmaExpandAttr : NMTile_Attr<"WgmmaExpand", "wgmma_expand",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getSumOwners",
         "getRingUse"]>]> {
  let summary = "weights expanded in registers, for products of warpgroups";
  let description = [{
    Reads weights of f16, bf16, f8E4M3FN, f8E5M2 or i8 that are stored as bitmaps,
    and expands them to dense fragments in registers. A warpgroup of sm_90a
    multiplies these by dense activations in shared memory, token-major or, of 16
    bits, feature-major. So any pattern is
    multiplied at the speed of a dense product, while its weight is read at its
    packed size.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps that divide the outputs of a tile | a multiple of the 4 of a warpgroup, at most 28; each warpgroup multiplies a multiple of 64 outputs by all tokens of the tile, 8 to 256 in steps of 8, with i8 in steps of 16 from 32 on; at most 192 accumulators a thread | must be given |
    | `shares` | for few tokens: groups of warps that expand and multiply one share of each K step each, and add their sums in the end | a divisor of the number of warpgroups; a K step has a multiple of 128 bytes of rows for each | 1 |
    | `segments` | a lane reads and expands whole windows at once, in two thirds of the instructions; the tensor memory accelerator copies rows of activations in the order in which lanes then have them | elements of 16 bits; needs feature-major activations without batches; a K step has a multiple of the rows of four lanes for each share, at most 256, and so does the contraction | false |
    | `ahead` | the values of the next 64 bytes of rows of 64 outputs are loaded before the product of the last ones, so warps wait only for products; a thread then needs 72 registers beside its accumulators, otherwise 48 | if registers allow | false |

    The accumulators of a thread and 32 more registers must fit into the registers
    with which it starts: its share of 65536 among the threads of the CTA.
  }];
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"int64_t", "1">:$shares,
                        DefaultValuedParameter<"bool", "false">:$segments,
                        DefaultValuedParameter<"bool", "false">:$ahead);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Warps that divide the outputs of a tile.
    int64_t getOutputWarps() const { return getWarps() / getShares(); }
    /// Outputs of one warpgroup of `schedule`, which has this product.
    int64_t getWarpgroupOutputs(ScheduleAttr schedule) const;
  }];
}

#endif // NM_SPARSE_PRODUCTS_WGMMAEXPAND_WGMMAEXPAND_TD
