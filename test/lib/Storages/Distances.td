//===- Distances.td - positions as distances ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_STORAGES_DISTANCES_TD
#define NM_TEST_STORAGES_DISTANCES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

def NMTestStorages_Dialect : Dialect {
  let name = "nm_test_storages";
  let cppNamespace = "::mlir::nm_test";
  let summary = "storages that only tests use";
  let useDefaultAttributePrinterParser = 1;
}

def NMTestStorages_DistancesAttr : AttrDef<NMTestStorages_Dialect, "Distances",
    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["hasOwnPositions", "readPosition"]>]> {
  let mnemonic = "distances";
  let summary = "how many blocks are dropped before each one that is kept";
  let description = [{
    `values` as in the canonical form of an `n:m` level, and `distances` in place
    of its positions: bytes, of which those of a window up to a block, and one for
    each block between, add up to its position.
  }];
  let parameters = (ins "::mlir::nm_sparse::EncodingAttr":$encoding);
  let assemblyFormat = "`<` qualified($encoding) `>`";
}

#endif // NM_TEST_STORAGES_DISTANCES_TD
