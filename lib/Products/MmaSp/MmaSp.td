//===- MmaSp.td - sparse products of warps -----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_MMASP_MMASP_TD
#define NM_SPARSE_PRODUCTS_MMASP_MMASP_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_MmaSpAttr : NMTile_Attr<"MmaSp", "mma_sp",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getRingUse"]>]> {
  let summary = "products of warps on sparse tensor cores, by mma.sp";
  let description = [{
    Multiplies 2:4 weights that are stored as bitmaps with `mma.sp.sync`: f16, bf16
    and i8 on sm_80 and newer, f8E4M3FN and f8E5M2 on sm_89 and newer. Fragments are
    16 outputs x 8 tokens, and take 32 rows of 16 bits or 64 rows of 8 bits at a
    time. `ldmatrix` reads values and activations from shared memory. Lanes derive
    the metadata, which says to which of four rows a value belongs, from the bits.
    Activations are token-major or, with 16 bits, feature-major. Sums are f32, or
    i32 for i8.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 32 in all; a multiple of 8 tokens and 32 outputs for each | must be given |

    Its costs are estimates: the counts of its instructions and bytes, at the share
    of their rates that `mma` reaches. No time of this product has been measured.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Outputs and tokens of a fragment, and rows of the weight that products
    /// share a word of bits of.
    static constexpr int64_t kFragmentOutputs = 16, kFragmentTokens = 8,
                             kPairRows = 64;
  }];
}

#endif // NM_SPARSE_PRODUCTS_MMASP_MMASP_TD
