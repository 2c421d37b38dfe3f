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
         "verifyProblem", "readsBitmaps", "readsTokenMajorWindows",
         "hasLeanProducers"]>]> {
  let summary = "products of warps on sparse tensor cores, by mma.sp";
  let description = [{
    Multiplies 2:4 weights of f16, bf16 and i8, which are stored as bitmaps, on
    sm_80 and newer, and of f8E4M3FN and f8E5M2 on sm_89 and newer, with
    `mma.sp.sync`, in fragments of 16 outputs x 8 tokens, 32 rows of 16 bits or 64 of
    8 at a time. Values and activations are read from shared memory by `ldmatrix`;
    which of four rows a value belongs to, lanes make of the bits. Activations are
    token-major or, of 16 bits, feature-major. Sums are f32; of i8 they are i32.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | `[tokens, outputs]`: how the tile is divided among warps | at most 32 in all; a multiple of 8 tokens and 32 outputs for each | must be given |

    Its costs are guesses of what the counts of its instructions and bytes take,
    by the share of their rates that `mma` reaches: no time of it has been
    measured.
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
