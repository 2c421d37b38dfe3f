//===- WgmmaSp.td - sparse products of warpgroups ----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WGMMASP_WGMMASP_TD
#define NM_SPARSE_PRODUCTS_WGMMASP_WGMMASP_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_WgmmaSpAttr : NMTile_Attr<"WgmmaSp", "wgmma_sp",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getRingUse"]>]> {
  let summary = "products of warpgroups on sparse tensor cores";
  let description = [{
    Multiplies 2:4 weights of f16, bf16, f8E4M3FN, f8E5M2 and i8 that are stored as
    bitmaps, on sm_90a with `wgmma.mma_async.sp`, which takes half the time of a
    dense product. A matrix descriptor reads the values as they are stored. Threads
    derive the metadata, which says to which of four rows a value belongs, from the
    bits in registers. Activations are in shared memory, token-major or, with 16
    bits, feature-major.

    With two levels (V:N:M), the inner level must be 2:4 of f16 or bf16, in panels
    of a multiple of 64 outputs. The rows that a panel keeps are gathered:
    `transfers = {x = gather, values = bulk, index = resident}`, and tiles have a
    multiple of 64 tokens.

    Sums are f32; for 8-bit floats, tensor cores keep 13 bits of them behind the
    point. For i8, sums are i32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps that divide the outputs of a tile | a multiple of the 4 of a warpgroup, at most 28; each warpgroup multiplies a multiple of 64 outputs by all tokens of the tile, 8 to 256 in steps of 8, and for i8 in steps of 16 above 32; at most 192 accumulators a thread | must be given |
    | `ahead` | a warpgroup waits for the copies of the next K step, and makes its metadata, before the products of this one end; this gains with 128 tokens or more, and with a ring of 4 slots or more | `true`, `false` | `false` |
  }];
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"bool", "false">:$ahead);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Outputs of one warpgroup of `schedule`, which has this product.
    int64_t getWarpgroupOutputs(ScheduleAttr schedule) const;
  }];
}

#endif // NM_SPARSE_PRODUCTS_WGMMASP_WGMMASP_TD
