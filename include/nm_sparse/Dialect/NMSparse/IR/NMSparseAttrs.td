//===- NMSparseAttrs.td - encoding and packed weights      -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ATTRS_TD
#define NM_SPARSE_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/MatmulConfig.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

def NMSparse_Order : I32EnumAttr<"OutputOrder",
    "which outputs share a panel", [
      I32EnumAttrCase<"Identity", 0, "identity">,
      I32EnumAttrCase<"Shuffled", 1, "shuffled">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_EncodingAttr : NMSparse_Attr<"Encoding", "encoding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
     DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface,
        ["getWindowCount", "verifyMatmul", "verifySlice", "slice",
         "getTileShape"]>]> {
  let summary = "sparsity pattern of a weight tensor";
  let description = [{
    Says which elements of a weight may be nonzero: granularity x distribution
    x order.

    * `n:m`: at most `n` of every `m` consecutive blocks along the contraction
      dimension are kept, separately in each panel of `bn` outputs. `free`
      instead of `n:m`: each panel keeps a count of its own.
    * `block = [bk, bn]`: the unit that is kept or dropped, `bk` along the
      contraction dimension and `bn` along the output dimension. `[1, 1]`
      (default) is element-wise, `[1, L]` vector-wise.
    * `dim`: the contraction dimension of the tensor, one of its last two; the
      other one of these is the output dimension, and a leading third dimension
      is a batch. Default 0 (a `KxN` weight); 1 is PyTorch's `NxK`.
    * `order`: `identity` (default), or `shuffled`: the pattern holds when the
      outputs are put in another order, which is stored beside the values.

    Two levels, each in brackets: the inner one says which of the rows that the
    outer one keeps are nonzero. Its blocks must divide those of the outer one,
    and one of its windows is exactly what the outer level keeps of one of its
    windows, so that both can be chosen window by window.

    The last window and the last panel may be partial. Elements are f32, f16,
    bf16, f8E4M3FN, f8E5M2 or i8.

    ```mlir
    #w = #nm_sparse.encoding<8:32, block = [1, 128]>
    tensor<4096x4096xf16, #w>

    // V:N:M: 64 outputs share 4 rows of every 10, each output uses 2 of them.
    #v = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::nm_sparse::SparsityLevel">:$levels,
    "int64_t":$dim,
    "::mlir::nm_sparse::OutputOrder":$order
  );
  // Builds an encoding of one level.
  let builders = [AttrBuilder<(ins "int64_t":$n, "int64_t":$m,
      "int64_t":$blockK, "int64_t":$blockN, "int64_t":$dim,
      "::mlir::nm_sparse::OutputOrder":$order), [{
    ::mlir::nm_sparse::SparsityLevel level{n, m, blockK, blockN};
    return $_get($_ctxt, ::llvm::ArrayRef(level), dim, order);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Largest number of dense rows (m * bk) that one window may span. Where
    /// shared memory does not hold the activations of one, a kernel gathers
    /// parts of those that are kept (`index = rows`).
    static constexpr int64_t kMaxWindowRows = 65536;

    /// The level that the dense weight obeys, usually the only one. The
    /// accessors below refer to it.
    const SparsityLevel &getOuter() const { return getLevels().front(); }
    /// The level of the elements that are stored.
    const SparsityLevel &getInnermost() const { return getLevels().back(); }
    bool hasInnerLevel() const { return getLevels().size() > 1; }
    /// The innermost level alone, of a weight that lies in (contraction, output)
    /// order: `rank` dimensions.
    ::mlir::nm_sparse::EncodingAttr getInnermostEncoding(int64_t rank) const;

    int64_t getN() const { return getOuter().n; }
    int64_t getM() const { return getOuter().m; }
    int64_t getBlockK() const { return getOuter().blockK; }
    int64_t getBlockN() const { return getOuter().blockN; }
    bool isFree() const { return getOuter().isFree(); }
    /// Two of every four rows of an output, or of several: what sparse tensor
    /// cores multiply.
    bool isTwoOfFour() const {
      return !hasInnerLevel() && getOuter().isTwoOfFour();
    }
    /// Dense rows that one window spans along the contraction dimension.
    int64_t getWindowRows() const { return getOuter().getWindowRows(); }
    /// Dense rows of one window that the outer level keeps.
    int64_t getKeptRows() const { return getOuter().getKeptRows(); }
    /// Width in bits of a position in `index`.
    unsigned getIndexBitWidth() const { return getOuter().getIndexBitWidth(); }
    /// The stored share of the weight; for a free one, the largest possible.
    double getDensity() const;
    /// The default form of a weight: the canonical one, or, of a free weight, the
    /// first of the dialect's storages that is made for it.
    ::mlir::nm_sparse::WeightStorageInterface getDefaultStorage() const;
  }];
}

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

def NMSparse_PatchesAttr : NMSparse_Attr<"Patches", "patches"> {
  let summary = "which elements of an image a convolution multiplies";
  let description = [{
    The geometry of a convolution over images with channels `c`, height `h`, width
    `w` and batch `b`: the size of the kernel `(r, s)`, and for `h` and `w` each the
    stride, the dilation, and the zeros `low` in front of the image and `high`
    behind it. The output has `p` rows and `q` columns,
    `p = (h + low + high - dilation * (r - 1) - 1) / stride + 1`.

    `image` is the order of the image's dimensions, whose batch is the last or the
    first one, and `rows` that of the contraction `(c, r, s)`, the last one fastest.
    With the batch last, patches are feature-major: tokens that are neighbours in the
    image are those of one pixel. With the batch first and the channels last they are
    token-major; with the batch first and other dimensions last, each entry of the
    batch is a matrix of its own.

    ```mlir
    #nm_sparse.patches<kernel = [3, 3], low = [1, 1], high = [1, 1]>
    #nm_sparse.patches<kernel = [7, 7], strides = [2, 2], low = [3, 3], high = [3, 3],
                       image = "hwcb", rows = "rsc">
    #nm_sparse.patches<kernel = [3, 3], image = "bhwc", rows = "rsc">
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$kernel, ArrayRefParameter<"int64_t">:$strides,
    ArrayRefParameter<"int64_t">:$dilations, ArrayRefParameter<"int64_t">:$low,
    ArrayRefParameter<"int64_t">:$high, StringRefParameter<>:$image,
    StringRefParameter<>:$rows);
  let assemblyFormat = [{
    `<` custom<PatchesFields>($kernel, $strides, $dilations, $low, $high, $image,
                              $rows) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dimension of an image that `letter` (c, h, w or b) names.
    int64_t getImageDim(char letter) const {
      return static_cast<int64_t>(getImage().find(letter));
    }
    /// Returns true if tokens are rows of the patches: those of images with the
    /// batch first and the channels last.
    bool isTokenMajor() const {
      return getImage().front() == 'b' && getImage().back() == 'c';
    }
    /// Returns true if each entry of the batch is a matrix of its own.
    bool isBatched() const {
      return getImage().front() == 'b' && !isTokenMajor();
    }
    /// Rows (`axis` 0) or columns (1) of the output for an image with `size`.
    int64_t getOutputSize(int64_t size, unsigned axis) const;
    /// Extents of the contraction, in the order of `rows`, for so many channels.
    SmallVector<int64_t> getRowExtents(int64_t channels) const;

    /// A row of the matrix: a channel, and a place in the kernel.
    struct Row {
      int64_t channel, place[2];
    };
    Row getRow(int64_t number, int64_t channels) const;
    /// Returns true if that place (`axis` 0 or 1) of the kernel lies in an
    /// image with `size` for all outputs.
    bool isAlwaysInside(int64_t place, int64_t size, unsigned axis) const;
  }];
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

def NMSparse_PackedAttr : NMSparse_Attr<"Packed", "packed"> {
  let summary = "which weight packed tensors hold";
  let description = [{
    How a weight is stored, its dense shape (as declared: neither transposed nor
    padded; that of a convolution as a matrix) and element type. An encoding stands for its canonical form; of a
    `free` weight the compiler takes bitmaps, or, of larger blocks, ragged panels.

    ```mlir
    #nm_sparse.packed<#nm_sparse.encoding<8:32>, [4096, 4096], f16>
    #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<8:16>>, [4096, 4096], f16>
    ```
  }];
  let parameters = (ins
    "::mlir::nm_sparse::WeightStorageInterface":$storage,
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType
  );
  let builders = [
    AttrBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$weight), [{
      auto encoding =
          ::llvm::cast<::mlir::nm_sparse::EncodingAttr>(weight.getEncoding());
      return $_get(weight.getContext(), encoding.getDefaultStorage(),
                   flattenWeight(weight).getShape(), weight.getElementType());
    }]>
  ];
  let assemblyFormat = [{
    `<` $storage `,` `[` $shape `]` `,` $elementType `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dense weight, without an encoding.
    ::mlir::RankedTensorType getWeightType() const {
      return ::mlir::RankedTensorType::get(getShape(), getElementType());
    }
    ::llvm::SmallVector<::mlir::nm_sparse::WeightComponent>
    getComponents() const {
      return getStorage().getComponents(getWeightType());
    }
    ::mlir::nm_sparse::EncodingAttr getEncoding() const {
      return ::llvm::cast<::mlir::nm_sparse::EncodingAttr>(
          getStorage().getPattern());
    }
    /// The version of docs/Encoding.md that specifies the components.
    int64_t getLayoutVersion() const { return getStorage().getLayoutVersion(); }
  }];
}

//===----------------------------------------------------------------------===//
// Component
//===----------------------------------------------------------------------===//

def NMSparse_ComponentAttr : NMSparse_Attr<"Component", "component"> {
  let summary = "which component of which weight an argument holds";
  let description = [{
    Name of a component, and the weight that it belongs to. A function that takes
    a packed weight has it as `nm_sparse.component` on one argument for each
    component; `weight` is the same number on all of them, and on no other. They
    need not be neighbours. The same holds for results.
    `--nm-sparse-materialize-encodings` writes it, so that a host knows how to
    fill the arguments.

    ```mlir
    #p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
    func.func @f(
      %v: tensor<32x32xf16>
        {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
      %i: tensor<32x32xi8>
        {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>})
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$name,
    "int64_t":$weight,
    "::mlir::nm_sparse::PackedAttr":$packed
  );
  let assemblyFormat = [{
    `<` $name `,` `weight` `=` $weight `,` `of` `=` qualified($packed) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::mlir::nm_sparse::WeightComponent getComponent() const;
  }];
}

#endif // NM_SPARSE_ATTRS_TD
