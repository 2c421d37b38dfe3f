//===- Direct.td - the product reads global memory ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_DIRECT_DIRECT_TD
#define NM_SPARSE_TRANSFERS_DIRECT_DIRECT_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_DirectAttr : NMTile_Attr<"Direct", "direct",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "promote"]>]> {
  let summary = "the product reads global memory";
  let description = [{
    All operands: there are no tiles, and the pipeline is `sequential`.
  }];
}

#endif // NM_SPARSE_TRANSFERS_DIRECT_DIRECT_TD
