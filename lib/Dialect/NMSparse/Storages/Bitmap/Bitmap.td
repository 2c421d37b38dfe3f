//===- Bitmap.td - weights as values and bits --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_BITMAP_TD
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_BITMAP_TD

include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

def NMSparse_BitmapAttr : NMSparse_Attr<"Bitmap", "bitmap",
    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["getStoredTile", "getExpectedDensity", "withDensity", "getWindowCount",
         "verifyMatmul", "verifySlice", "slice", "getTileShape"]>]> {
  let summary = "a weight stored as values and a bit for each element";
  let description = [{
    For kernels that read a weight element by element, straight from global memory
    to registers. In tiles of 32 outputs, one for each lane of a warp, lie the
    kept values of each output, in pieces of 16 bytes, and one bit for each of its
    rows: `docs/Encoding.md` specifies both.

    The encoding has levels of `n:m`, with blocks of any size: the bits are those
    of elements. Of two levels, values and bits are those of the inner one, whose
    weight is what the outer one keeps, and `index` is that of the outer one; its
    panels are whole blocks of 32 outputs. Or it is `free` with blocks of one element; the size of
    `values` is then known at run time, and `density` is the share in percent that
    is expected to be kept, by which schedules are chosen and nothing else.

    ```mlir
    #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    #nm_sparse.bitmap<#nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>>
    #nm_sparse.bitmap<#nm_sparse.encoding<free>, density = 30>
    ```
  }];
  let parameters = (ins "::mlir::nm_sparse::EncodingAttr":$encoding,
    DefaultValuedParameter<"int64_t", "50">:$density);
  let builders = [AttrBuilder<(ins "::mlir::nm_sparse::EncodingAttr":$encoding), [{
    return $_get($_ctxt, encoding, kDefaultDensity);
  }]>];
  let assemblyFormat = [{
    `<` qualified($encoding) (`,` `density` `=` $density^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns true if a weight of `encoding` is stored in this form unless it
    /// says otherwise.
    static bool isDefaultFor(::mlir::nm_sparse::EncodingAttr encoding);

    /// Default density of free elements, in percent.
    static constexpr int64_t kDefaultDensity = 50;

    ::mlir::nm_sparse::BitmapTile getTile(::mlir::Type element) const;
  }];
}

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_BITMAP_TD
