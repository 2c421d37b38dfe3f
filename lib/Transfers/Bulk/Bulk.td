//===- Bulk.td - the tensor memory accelerator copies ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_BULK_BULK_TD
#define NM_SPARSE_TRANSFERS_BULK_BULK_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_BulkAttr : NMTile_Attr<"Bulk", "bulk",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "verifyBeside", "verifyOperand",
         "readsPatches", "promote", "populatePatterns"]>]> {
  let summary = "copied by the tensor memory accelerator, a K step at a time";
  let description = [{
    `x`: whole windows; `values`: the kept rows, one instruction a step; `index`:
    the bitmaps. By `bulk_copy`, once `--nm-sparse-create-tensor-maps` has found
    the box of each copy. For a convolution, pixels come from an image of which
    the channels are last, and whole lines of 128 bytes: their map is an im2col
    one.
  }];
}

#endif // NM_SPARSE_TRANSFERS_BULK_BULK_TD
