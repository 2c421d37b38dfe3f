//===- KMajor.td - values along the contraction ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_KMAJOR_KMAJOR_TD
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_KMAJOR_KMAJOR_TD

include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

def NMSparse_KMajorAttr : NMSparse_Attr<"KMajor", "k_major",
    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["isKMajor", "verifyMatmul", "slice", "getTileShape"]>]> {
  let summary = "a weight whose values lie along the contraction";
  let description = [{
    The canonical form, but the kept rows of an output are neighbours in memory:
    `values` are outputs x kept rows, which are filled up with zeros to a multiple
    of 16. Products of warpgroups read operands of 8 bits in no other order.
    `docs/Encoding.md` specifies it.

    The encoding has one level of `n:m`, and its outputs are in their own order.

    ```mlir
    #nm_sparse.k_major<#nm_sparse.encoding<8:32, block = [1, 128]>>
    ```
  }];
  let parameters = (ins "::mlir::nm_sparse::EncodingAttr":$encoding);
  let builders = [AttrBuilder<(ins "::mlir::nm_sparse::EncodingAttr":$encoding), [{
    return $_get($_ctxt, encoding);
  }]>];
  let assemblyFormat = "`<` qualified($encoding) `>`";
  let skipDefaultBuilders = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// No weight is stored in this form unless that is said.
    static bool isDefaultFor(::mlir::nm_sparse::EncodingAttr) { return false; }

    /// Returns true if weights of `encoding` have this form.
    static bool isLegalFor(::mlir::nm_sparse::EncodingAttr encoding);

    /// Kept rows are filled up to a multiple of this, so that those of each
    /// output begin where copies of 16 bytes can.
    static constexpr int64_t kRowUnit = 16;
  }];
}

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_KMAJOR_KMAJOR_TD
