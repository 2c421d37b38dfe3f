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
         "verifyProblem", "readsBitmaps", "readsSwizzledBlocks",
         "readsTokenMajorWindows", "staysInFlight", "hasLeanProducers",
         "dividesContraction", "getNumShares", "readsSegments"]>]> {
  let summary = "weights expanded in registers, for products of warpgroups";
  let description = [{
    Reads weights that are stored as bitmaps, of f16 or bf16, and expands them to
    dense fragments in registers, which a warpgroup of sm_90a multiplies by
    activations in shared memory as they are, token-major or feature-major. So
    any pattern is multiplied at the speed of a dense product, and its weight is
    read at its own size.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | that divide the outputs of a tile | a multiple of the 4 of a warpgroup, at most 28; each warpgroup multiplies a multiple of 64 outputs by all tokens of the tile, 8 to 256 in steps of 8; at most 192 accumulators a thread | must be given |
    | `shares` | of each K step, that as many groups of warps expand and multiply at the same time and add up in the end: for few tokens | divides the warpgroups; a K step has 64 rows, or a multiple, for each | 1 |
    | `segments` | a lane expands whole windows, which it reads at once, in two thirds of the instructions, and the accelerator copies rows of activations in the order in which lanes then have them | feature-major activations without batches; a K step has as many rows as four lanes for each share, or a multiple, 256 at most, and the contraction too | false |
    | `ahead` | the values of the next 32 rows of 64 outputs are loaded before the product of the last ones, so that warps wait for products alone; a thread needs 72 registers beside its accumulators for that, and else 48 | where registers allow | false |

    The accumulators of a thread and 32 registers more must fit into the registers
    that it has at first: its part of 65536 among the threads of the CTA.
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
