//===- NMTileAttrs.td - attributes of the nm_tile dialect --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD

include "mlir/IR/EnumAttr.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/Schedule.td"

def NMTile_RingState : I32EnumAttr<"RingState", "what one waits for of a slot", [
    I32EnumAttrCase<"Full", 0, "full">,
    I32EnumAttrCase<"Empty", 1, "empty">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}
def NMTile_RingStateAttr
    : EnumAttr<NMTile_Dialect, NMTile_RingState, "ring_state">;

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD
