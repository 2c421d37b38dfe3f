//===- Whole.td - all values before the K loop -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_TRANSFERS_WHOLE_TD
#define NM_TEST_TRANSFERS_WHOLE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

def NMTestTransfers_Dialect : Dialect {
  let name = "nm_test_transfers";
  let cppNamespace = "::mlir::nm_test";
  let summary = "transfers that only tests use";
  let useDefaultAttributePrinterParser = 1;
}

def NMTestTransfers_WholeAttr : AttrDef<NMTestTransfers_Dialect, "Whole",
    [DeclareAttrInterfaceMethods<NMTile_TransferAttrInterface,
        ["getTransferName", "brings", "getUse", "promoteBefore", "promote"]>]> {
  let mnemonic = "whole";
  let summary = "all values of the tile of a CTA, once, before the K loop";
  let description = [{
    `values`: for products of a few K steps, which then copy activations alone.
  }];
}

#endif // NM_TEST_TRANSFERS_WHOLE_TD
