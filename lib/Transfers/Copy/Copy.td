//===- Copy.td - threads copy each K step ------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_COPY_COPY_TD
#define NM_SPARSE_TRANSFERS_COPY_COPY_TD

include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTile_CopyAttr : NMTile_Attr<"Copy", "copy",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "readsPatches",
         "promote", "populatePatterns"]>]> {
  let summary = "copied by threads, a K step at a time";
  let description = [{
    `x`: whole windows, from which the product selects rows. `values`: the kept
    rows. By `async_copy`, which transposes what lies the other way. For a
    convolution `x` comes from the image itself.
  }];
}

def NMTile_StagedAttr : NMTile_Attr<"Staged", "staged",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "promote"]>]> {
  let summary = "positions, copied by threads, a K step at a time";
  let description = [{
    `index`: as `copy`. Where rows of `x` are gathered, the gather of a K step
    reads its positions before a copy of the same step has come: so they stay
    where they lie.
  }];
}

#endif // NM_SPARSE_TRANSFERS_COPY_COPY_TD
