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
         "verifyProblem", "readsBitmaps", "readsCoreMatrices",
         "readsSwizzledBlocks", "readsTokenMajorWindows", "readsInnerLevels",
         "hasLeanProducers", "allowsProducerTurns"]>]> {
  let summary = "products of warpgroups on sparse tensor cores";
  let description = [{
    Multiplies 2:4 weights of f16, bf16, f8E4M3FN, f8E5M2 and i8, which are stored
    as bitmaps, on sm_90a with `wgmma.mma_async.sp`, which takes half the time of a
    dense product. The values are read through a matrix descriptor as they are;
    which of four rows they belong to, threads make of the bits in registers.
    Activations are in shared memory, token-major or, of 16 bits, feature-major.
    Of two levels (V:N:M), 2:4 of f16 or bf16 in panels of a multiple of 64 outputs,
    the rows that a panel keeps are gathered: `transfers = {x = gather, values =
    bulk, index = resident}`, and tiles of a multiple of 64 tokens.
    Sums are f32, of which tensor cores keep 13 bits behind the point where the
    elements are 8-bit floats; of i8 they are i32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | that divide the outputs of a tile | a multiple of the 4 of a warpgroup, at most 28; each warpgroup multiplies a multiple of 64 outputs by all tokens of the tile, 8 to 256 in steps of 8, and of 16 above 32 where elements are i8; at most 192 accumulators a thread | must be given |
    | `ahead` | a warpgroup waits for the copies of the next K step, and makes its metadata, before the products of this one end; gains with 128 tokens and more, and where the ring has 4 slots or more | `true`, `false` | `false` |
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
