//===- Gather.td - only the rows that a weight keeps -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_GATHER_GATHER_TD
#define NM_SPARSE_TRANSFERS_GATHER_GATHER_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_GatherAttr : NMTile_Attr<"Gather", "gather",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "readsPatches",
         "promote", "populatePatterns"]>]> {
  let summary = "only the activations that the index names";
  let description = [{
    `x`: the tile holds, for each panel, the rows that its kept ones multiply, by
    `async_gather`. For a convolution they come from the image itself.
  }];
}

#endif // NM_SPARSE_TRANSFERS_GATHER_GATHER_TD
