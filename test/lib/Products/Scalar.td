//===- Scalar.td - the shortest product --------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_TEST_PRODUCTS_SCALAR_TD
#define NM_TEST_PRODUCTS_SCALAR_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"
include "nm_sparse/Conversion/TileToThreads/ProductLowering.td"

def NMTest_Dialect : Dialect {
  let name = "nm_test";
  let cppNamespace = "::mlir::nm_test";
  let summary = "products that only tests use";
  let useDefaultAttributePrinterParser = 1;
}

def NMTest_ScalarAttr : AttrDef<NMTest_Dialect, "Scalar",
    [DeclareAttrInterfaceMethods<NMTile_ProductAttrInterface,
        ["getProductName", "getNumWarps", "verifyTile", "verifyTransfers",
         "verifyProblem"]>,
     DeclareAttrInterfaceMethods<NMSparse_ProductLoweringInterface>]> {
  let mnemonic = "scalar";
  let summary = "one thread, one element, straight from global memory";
  let description = [{
    A warp whose lanes compute 4 tokens x 8 outputs, f32, of any pattern.
  }];
}

#endif // NM_TEST_PRODUCTS_SCALAR_TD
