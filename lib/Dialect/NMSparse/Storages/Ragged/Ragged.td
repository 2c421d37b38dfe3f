//===- Ragged.td - free weights panel by panel -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_RAGGED_TD
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_RAGGED_TD

include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

def NMSparse_RaggedAttr : NMSparse_Attr<"Ragged", "ragged",
    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["getListedPanels", "getTilePattern", "withDensity", "getWindowCount",
         "verifyMatmul", "verifySlice", "slice"]>]> {
  let summary = "a free weight stored panel by panel, in whole K steps";
  let description = [{
    For kernels whose K loop takes as many steps as a panel has. The kept rows of
    a panel follow one another, filled up to a multiple of `rows` with zeros, of
    which there may be 1 to 256. Blocks are stored in parts, of the largest number
    of rows that divides theirs, `rows` and 16. `index` says which row of the
    activations each part begins with, and
    `panels` where the rows of each panel lie, panels with the most of them first:
    `docs/Encoding.md` specifies all three, and `perm`, the order of the outputs of
    a shuffled weight.

    The encoding is `free`. How many rows there are is known at run time;
    `density` is the share in percent of the rows of a panel that is expected to
    be kept, by which schedules are chosen and nothing else.

    ```mlir
    #nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 128]>>
    #nm_sparse.ragged<#nm_sparse.encoding<free, block = [16, 64]>, rows = 32, density = 25>
    ```
  }];
  let parameters = (ins "::mlir::nm_sparse::EncodingAttr":$encoding,
    DefaultValuedParameter<"int64_t", "64">:$rows,
    DefaultValuedParameter<"int64_t", "50">:$density);
  let builders = [AttrBuilder<(ins "::mlir::nm_sparse::EncodingAttr":$encoding), [{
    return $_get($_ctxt, encoding, kDefaultRows, kDefaultDensity);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns true if a weight of `encoding` is stored in this form unless it
    /// says otherwise.
    static bool isDefaultFor(::mlir::nm_sparse::EncodingAttr encoding);

    /// Default expected density, in percent.
    static constexpr int64_t kDefaultDensity = 50;
    /// Default for the multiple of rows to which panels are filled up.
    static constexpr int64_t kDefaultRows = 64;

    /// Rows that are kept together: those of a part of a block.
    int64_t getBlockRows() const;
  }];
}

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_RAGGED_TD
