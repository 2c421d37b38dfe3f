//===- Code.td - weights that are code ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_CODE_TD
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_CODE_TD

include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

def NMSparse_CodeAttr : NMSparse_Attr<"Code", "code",
    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["getStoredTile", "getExpectedDensity", "getConstant", "withConstant",
         "getWindowCount", "verifyMatmul", "verifySlice", "slice"]>]> {
  let summary = "a constant weight that kernels have as code, in no tensor";
  let description = [{
    For products whose instructions hold the elements of the weight. It has no
    components: nothing of it is in memory, and no kernel takes it. `weight` is the
    dense weight, `(k, n)`; all of its elements but +0 are kept.

    ```mlir
    #nm_sparse.code<#nm_sparse.encoding<free>, dense<[[0.0, 1.0], [2.0, 0.0]]> : tensor<2x2xf16>>
    ```
  }];
  let parameters = (ins "::mlir::nm_sparse::EncodingAttr":$encoding,
                        "::mlir::DenseElementsAttr":$weight);
  // Holds no weight yet.
  let builders = [AttrBuilder<(ins "::mlir::nm_sparse::EncodingAttr":$encoding), [{
    auto none = ::mlir::RankedTensorType::get(
        {0, 0}, ::mlir::Float32Type::get($_ctxt));
    return $_get($_ctxt, encoding, ::mlir::DenseElementsAttr::get(
        none, ::llvm::ArrayRef<float>()));
  }]>];
  let assemblyFormat = "`<` qualified($encoding) `,` $weight `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// It is never a default: its data is in the attribute.
    static bool isDefaultFor(::mlir::nm_sparse::EncodingAttr) { return false; }
  }];
}

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_CODE_TD
