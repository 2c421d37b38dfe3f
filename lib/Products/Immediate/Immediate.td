//===- Immediate.td - weights in the code of a kernel ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_IMMEDIATE_IMMEDIATE_TD
#define NM_SPARSE_PRODUCTS_IMMEDIATE_IMMEDIATE_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_ImmediateAttr : NMTile_Attr<"Immediate", "immediate",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem", "getOperandTiles", "getSumOwners"]>]> {
  let summary = "constant weights in the code of the kernel";
  let description = [{
    This product is for weights that the compiler knows and that keep few elements.
    Each element that is not +0 becomes an operand of an FFMA, and each row that an
    output uses becomes a load from an address that the code knows. The kernel reads
    nothing of the weight, and dropped elements cost nothing. A lane owns tokens, and
    has all outputs of the tile in registers. Each tile of outputs has code of its
    own, to which its CTAs branch. Reads feature-major activations of f16, bf16 and
    f32, and sums in f32. For a convolution, it reads the image itself; elements
    outside of the image are not read, and count as zero. The weight is a constant
    of `free` elements, and a K step has all of its rows.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `warps` | warps of the CTA | 1 to 32 | must be given |
    | `shares` | groups of warps that divide the elements of a tile evenly. In the end they divide the outputs, and each group adds the sums of all groups for its outputs. The warps of a group divide the tokens of the tile, 32, 64 or 128 for each | a divisor of `warps`, and of the outputs of a tile | 1 |
  }];
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"int64_t", "1">:$shares);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Outputs of a tile at most, all of which a lane has in registers, and
    /// sums of a lane.
    static constexpr int64_t kMostOutputs = 128, kMostSums = 128;

    /// Warps that divide the tokens of a tile.
    int64_t getTokenWarps() const { return getWarps() / getShares(); }
  }];
}

#endif // NM_SPARSE_PRODUCTS_IMMEDIATE_IMMEDIATE_TD
