//===- Accumulator.td - which thread holds what of a sum ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"

def NMTile_TileDim : I32EnumAttr<"TileDim", "what a digit counts", [
    I32EnumAttrCase<"Tokens", 0, "tokens">,
    I32EnumAttrCase<"Outputs", 1, "outputs">,
    I32EnumAttrCase<"Shares", 2, "shares">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMTile_AccumulatorAttr : NMTile_Attr<"Accumulator", "accumulator"> {
  let summary = "which elements of an accumulator each thread holds";
  let description = [{
    Threads that multiply are numbered, and so are the elements of each. Both
    numbers are read as digits, the fastest first: those of `unit`, the lanes of a
    group, warp or warpgroup that multiplies together, and of `units` are of the
    thread; those of `elements` of the element. `outputs 4 by 2` is a digit from 0
    to 3 which moves the element by 2 outputs; `shares 8` one of `units` that moves
    nothing: so many threads have a share of the same elements, and the first ones
    own the sum.

    | field | digits | legal |
    |---|---|---|
    | `unit` | threads side by side | `tokens`, `outputs` |
    | `units` | the unit | `tokens`, `outputs`, then `shares` |
    | `elements` | the element of a thread | `tokens`, `outputs` |

    Together the digits count the tokens and the outputs of the tile, each once.

    ```mlir
    // mma.m16n8: 2 x 2 warps of 32 tokens x 64 outputs.
    #nm_tile.accumulator<unit = [outputs 4 by 2, tokens 8 by 1],
                         units = [outputs 2 by 64, tokens 2 by 32],
                         elements = [outputs 2 by 1, tokens 2 by 8,
                                     outputs 8 by 8, tokens 2 by 16]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::nm_sparse::LayoutDigit">:$unit,
    ArrayRefParameter<"::mlir::nm_sparse::LayoutDigit">:$units,
    ArrayRefParameter<"::mlir::nm_sparse::LayoutDigit">:$elements
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Tokens, or outputs, of the tile.
    int64_t getExtent(TileDim dim) const;
    /// Tokens, or outputs, of a unit.
    int64_t getUnitExtent(TileDim dim) const;
    int64_t getUnitThreads() const;
    int64_t getNumThreads() const;
    /// Threads that have a share of the same elements.
    int64_t getShares() const;
    int64_t getNumElements() const;
    /// Neighbours along `dim` that a thread holds, the first of which is at a
    /// multiple of their number.
    int64_t getRun(TileDim dim) const;
    /// The dimension of the rows, if a unit begins with fragments as those of
    /// mma.m16n8: 8 rows of 4 lanes with 2 neighbours each, and 8 rows further.
    std::optional<TileDim> getFragmentRows() const;
  }];
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_TD
