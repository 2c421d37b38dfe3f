//===- Resident.td - positions of all K steps --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_RESIDENT_RESIDENT_TD
#define NM_SPARSE_TRANSFERS_RESIDENT_RESIDENT_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_ResidentAttr : NMTile_Attr<"Resident", "resident",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "promoteBefore", "promote"]>]> {
  let summary = "all positions once, before the K loop";
  let description = [{
    `index`: a K step reads its part of what shared memory holds.
  }];
}

def NMTile_RowsAttr : NMTile_Attr<"Rows", "rows",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "verifyBeside",
         "promoteBefore", "promote"]>]> {
  let summary = "a table of the rows of the activations, before the K loop";
  let description = [{
    `index`: in place of positions. The table takes two or four bytes of shared
    memory for each block, but fewer instructions in each step, and K steps may
    begin inside windows. The rows of ragged panels are listed where their values
    are: then there is no table.
  }];
}

#endif // NM_SPARSE_TRANSFERS_RESIDENT_RESIDENT_TD
