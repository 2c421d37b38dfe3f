//===- NMSparseOps.td - nm_sparse operations ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_OPS_TD
#define NM_SPARSE_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/IndexingMapOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseTokenOps.td"

//===----------------------------------------------------------------------===//
// Operations on whole tensors
//===----------------------------------------------------------------------===//

def NMSparse_PruneOp : NMSparse_Op<"prune",
    [Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
       ["reifyResultShapes"]>]> {
  let summary = "drop the smallest blocks until the pattern holds";
  let description = [{
    Returns the weight with, in each window and panel, all but the `n` blocks of
    largest magnitude (sum of squares) set to zero; equal magnitudes keep the
    smaller position. `docs/Encoding.md` says how two levels are chosen together,
    and which outputs share a panel where `order = shuffled`. Of a `free` weight
    the share `density` of all blocks is kept, 0 to 1.
    The result type may carry the encoding.

    ```mlir
    %p = nm_sparse.prune #nm_sparse.encoding<2:4> %w
         : tensor<64x64xf32> to tensor<64x64xf32, #nm_sparse.encoding<2:4>>
    %q = nm_sparse.prune #nm_sparse.encoding<free, block = [1, 32]>
           density = 2.500000e-01 %w : tensor<64x64xf32> to tensor<64x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$weight, NMSparse_EncodingAttr:$encoding,
                       OptionalAttr<F64Attr>:$density);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $encoding (`density` `=` $density^)? $weight attr-dict `:` type($weight) `to` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$weight,
                                 "EncodingAttr":$encoding), [{
    build($_builder, $_state, result, weight, encoding,
          /*density=*/FloatAttr());
  }]>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NMSparse_PackOp : NMSparse_Op<"pack",
    [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "packed form of a weight";
  let description = [{
    Stores the kept blocks of a weight and their positions in the canonical layout
    of `docs/Encoding.md`: one result for each component of the weight, `values`
    first. Data that breaks the pattern is an error that names window and panel:
    at compile time for a constant, at run time otherwise.

    For a `KxN` weight with `W` windows and `P` panels, `values` is
    `(W*n*bk)x(P*bn)` and `index` is `(W*n)xP`; a batch dimension stays in front.
    With a second level, `inner_index` follows. A `free` weight becomes bitmaps,
    `values` and `bits`, or, of larger blocks than one element, ragged panels,
    `values`, `index` and `panels`; `docs/Encoding.md` says their sizes.

    With `storage`, of the same encoding, the results are the components of a
    dense weight without an encoding that is stored in that form.

    ```mlir
    %v, %i = nm_sparse.pack #nm_sparse.encoding<8:32, block = [1, 128]> %w
      : tensor<4096x4096xf16> to tensor<1024x4096xf16>, tensor<1024x32xi8>
    %b, %m = nm_sparse.pack #e storage = #nm_sparse.bitmap<#e> %w
      : tensor<64x64xf16> to tensor<2x2x512xf16>, tensor<2x2x32xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$weight, NMSparse_EncodingAttr:$encoding,
                       OptionalAttr<NMSparse_WeightStorageInterface>:$storage);
  let results = (outs Variadic<AnyRankedTensor>:$components);
  let assemblyFormat = [{
    $encoding (`storage` `=` $storage^)? $weight attr-dict `:` type($weight) `to` type($components)
  }];
  let builders = [OpBuilder<(ins "Value":$weight, "EncodingAttr":$encoding,
                                 CArg<"WeightStorageInterface", "{}">:$storage)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The component of that name; the weight has one.
    Value getComponent(StringRef name);
    /// `storage`, or the default form of the encoding.
    WeightStorageInterface getForm();
  }];
}

def NMSparse_UnpackOp : NMSparse_Op<"unpack", [Pure]> {
  let summary = "dense form of a packed weight";
  let description = [{
    Inverse of `nm_sparse.pack`: the dense weight, with zeros where nothing is
    stored. The result type may carry the encoding.

    ```mlir
    %w = nm_sparse.unpack #nm_sparse.encoding<8:32, block = [1, 128]> %v, %i
      : tensor<1024x4096xf16>, tensor<1024x32xi8> to tensor<4096x4096xf16>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$components,
                       NMSparse_EncodingAttr:$encoding);
  let results = (outs AnyRankedTensor:$weight);
  let assemblyFormat = [{
    $encoding $components attr-dict `:` type($components) `to` type($weight)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The component of that name; the weight has one.
    Value getComponent(StringRef name);
  }];
}

def NMSparse_MatmulOp : NMSparse_Op<"matmul",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     IndexingMapOpInterface, Pure,
     DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
       ["reifyResultShapes"]>,
     DeclareOpInterfaceMethods<TilingInterface,
       ["getLoopIteratorTypes", "getIterationDomain",
        "getTiledImplementation", "getResultTilePosition",
        "generateResultTileValue", "getIterationDomainTileFromResultTile",
        "getIterationDomainTileFromOperandTiles",
        "getTiledImplementationFromOperandTiles",
        "isOpFusableWithProducerSlices"]>,
     DeclareOpInterfaceMethods<PartialReductionOpInterface,
       ["generateInitialTensorForPartialReduction", "tileToPartialReduction",
        "mergeReductions", "getPartialResultTilePosition"]>]> {
  let summary = "product of activations with a packed N:M-sparse weight";
  let description = [{
    `init + x * w`, where `w` is given in packed form. Products are accumulated
    in f32 (i32 for i8 operands) whatever the type of `init`.

    Loops are `(m, n, k)`, or `(b, m, n, k)` with a batch: `m` counts tokens, `n`
    outputs. `indexing_maps` holds one map each for `x`, the logical weight and
    the result. The weight's map is `(k, n)`, or `(b, k, n)` when each batch has
    a weight of its own, because the packed form is canonical; the other two may
    be any permutation of their dimensions, so each transposition is a map.

    The weight is a list of components, in the order of its storage: that of
    `storage`, or, without it, the canonical form of the encoding. The storage says
    which components there are and what each holds; `docs/Encoding.md` specifies
    those of this dialect. What it multiplies may also be a slice of a weight, as
    the storage cuts it for a tile; `at` then names the places, known at run time,
    that say where in the weight the slice lies:

    - `panel_offset`: the position of the first output in its panel, where a tile
      starts inside one and reaches into the next.
    - `first_row`: the kept row that `values` begins with, a multiple of the rows
      of a block, where a part of the contraction starts inside a window. `x` and
      `index` are those of all rows. A `free` weight as bitmaps is whole in any
      case: it says itself which values each step has. A step of a ragged panel is
      the rows of `values` and `index` from that one on, without `panels`.

    `contraction_size` is the dense extent of `k`; it may end inside the last
    window.

    Its iteration domain for tiling is `([b,] m, n, w)` where `w` counts windows:
    a tile always consists of whole windows, and is what the storage can cut: of
    bitmaps whole stored tiles, of ragged panels a part of one panel with all of
    its contraction.

    The contraction can be split (`PartialReductionOpInterface`) into runs of
    windows, one to each iteration of a parallel loop, or into the windows of a
    tile, each of which is summed up over a sequential loop; these become the
    batch of the product, which must have none, and `k` must be whole windows.
    Partial sums are in the type of accumulation, and `init` is added, and the
    sum rounded to its type, where they are merged. Parts with `first_row` are not
    split.

    ```mlir
    %y = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
           indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                            affine_map<(m, n, k) -> (k, n)>,
                            affine_map<(m, n, k) -> (m, n)>]
           ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>,
                            tensor<1024x32xi8>)
           outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x,
                       Variadic<AnyRankedTensor>:$components,
                       AnyRankedTensor:$init,
                       Variadic<Index>:$places,
                       NMSparse_EncodingAttr:$encoding,
                       AffineMapArrayAttr:$indexing_maps,
                       OptionalAttr<NMSparse_MatmulConfigInterface>:$config,
                       OptionalAttr<NMSparse_WeightStorageInterface>:$storage,
                       OptionalAttr<StrArrayAttr>:$place_names);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $encoding (`storage` `=` $storage^)? `indexing_maps` `=` $indexing_maps
    (`config` `=` $config^)?
    `ins` `(` $x (`,` $components^)? `:` type($x) (`,` type($components)^)? `)`
    `outs` `(` $init `:` type($init) `)`
    (`at` `` custom<Places>($places, $place_names)^)?
    attr-dict `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$x,
      "const WeightSlice &":$weight, "Value":$init, "EncodingAttr":$encoding,
      "ArrayAttr":$indexing_maps, "MatmulConfigInterface":$config,
      "WeightStorageInterface":$storage), [{
    build($_builder, $_state, result, x, weight.components, init,
          weight.getPlaceValues(), encoding, indexing_maps, config, storage,
          weight.getPlaceNames($_builder.getContext()));
  }]>];
  let hasVerifier = 1;
  // Attributes by their names, so that old files stay readable.
  let useCustomPropertiesEncoding = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }

    // IndexingMapOpInterface, over the loops ([b,] m, n, k). The three maps are
    // those of x, the logical weight and the result; no affine map leads to an
    // element of a component, so that the map of one has no results.
    AffineMap getMatchingIndexingMap(OpOperand *operand);
    SmallVector<int64_t> getStaticOperandShape(OpOperand *operand);
    SmallVector<int64_t> getStaticLoopRanges();

    AffineMap getXMap();
    AffineMap getWeightMap();
    AffineMap getResultMap();
    bool hasBatch() { return getXMap().getNumDims() == 4; }
    /// Returns true if each batch entry has a weight of its own.
    bool hasBatchedWeight() { return getWeightMap().getNumResults() == 3; }
    /// Position of loop `m`; `n` and the reduction follow it.
    unsigned getTokenLoop() { return hasBatch() ? 1 : 0; }
    unsigned getOutputLoop() { return getTokenLoop() + 1; }
    unsigned getReductionLoop() { return getTokenLoop() + 2; }
    /// Dimension of `x` that loop `k` indexes.
    int64_t getXReductionDim();
    /// Dimension of `x` that loop `m` indexes.
    int64_t getXTokenDim();
    /// How the weight is stored: `storage`, or the canonical form.
    WeightStorageInterface getForm();
    /// The component of that name; null where the product has none.
    Value getComponent(StringRef name);
    /// The values that are kept, the first component.
    Value getValues() { return getComponents().front(); }
    /// The component that says where they are, the second one: positions of the
    /// outer level, or bits; null where the weight is code.
    Value getIndex() {
      return getComponents().size() > 1 ? getComponents()[1] : Value();
    }
    /// That of the innermost level, which says which elements are kept.
    Value getInnermostIndex() {
      return getComponents()[getEncoding().getLevels().size()];
    }
    /// The place of that name; null where the product is of a whole weight, or
    /// of a part that begins with it.
    Value getPlace(StringRef name);
    /// The weight that it multiplies, with its places.
    WeightSlice getWeight();
    /// Number of windows along the contraction dimension.
    int64_t getNumWindows();
    /// The tiles that the weight is stored in; none where it lies in panels.
    std::optional<BitmapTile> getStoredTile();
    /// How the panels of the weight list their rows; none where they do not.
    std::optional<ListedPanels> getListedPanels();
    /// The pattern of a tile in a kernel: that of the weight or, for ragged
    /// panels, a window of all rows, of which the expected share is kept.
    EncodingAttr getTileEncoding();
    /// Dense extent of loop `k` (may be dynamic on tiles).
    int64_t getContractionSize();
    /// Returns true if consecutive tokens are neighbours in `x`.
    bool isXFeatureMajor();
    /// Returns true if consecutive tokens are neighbours in the result.
    bool isResultFeatureMajor();
  }];
}

//===----------------------------------------------------------------------===//
// Order of outputs
//===----------------------------------------------------------------------===//

def NMSparse_PermuteOp : NMSparse_Op<"permute",
    [Pure, AllTypesMatch<["source", "result"]>,
     DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
       ["reifyResultShapes"]>]> {
  let summary = "put what lies along a dimension into another order";
  let description = [{
    What lies at place `j` of dimension `dim` of the source lies at `perm[j]` of
    the result. With `inverse` it is the other way round: place `j` of the result
    is place `perm[j]` of the source. `perm` must hold each number below the size
    of that dimension once.

    A weight with `order = shuffled` is multiplied as it is packed: place `j` of
    its outputs is output `perm[j]` of the weight. So a product of it has its
    outputs in that order, and this op puts them where they belong; `inverse` puts
    its `init` into the order of the product.

    A batch of permutations has a second dimension, in front: place `(b, j)` is
    for entry `b` of dimension `batch` of the source.

    ```mlir
    // result[t, perm[j]] = y[t, j]
    %r = nm_sparse.permute %y, %perm dim = 1 : tensor<?x64xf32>, tensor<64xi32>
    // q[t, j] = init[t, perm[j]]
    %q = nm_sparse.permute inverse %init, %perm dim = 1
           : tensor<?x64xf32>, tensor<64xi32>
    // result[b, t, perm[b, j]] = y[b, t, j]
    %s = nm_sparse.permute %y, %perm dim = 2 batch = 0
           : tensor<4x?x64xf32>, tensor<4x64xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$perm,
                       I64Attr:$dim, OptionalAttr<I64Attr>:$batch,
                       UnitAttr:$inverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $source `,` $perm `dim` `=` $dim
    (`batch` `=` $batch^)? attr-dict `:` type($source) `,` type($perm)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

def NMSparse_PatchesOp : NMSparse_Op<"patches",
    [Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
       ["reifyResultShapes"]>]> {
  let summary = "what a convolution multiplies, as a matrix";
  let description = [{
    A convolution is a product of its weight, flattened over channels and kernel,
    with this matrix of `k x m`: row `k` is a channel and a place `(r, s)` in the
    kernel, column `m` an output `(p, q)` of batch entry `b`, the batch fastest:

    `result[(c, r, s), (p, q, b)] =
       image[c, p * stride + r * dilation - low, q * stride + s * dilation - low, b]`

    and zero outside of the image. Channels, height and width must be static. Of an
    image with its batch first and its channels last it is `m x k`, of tokens
    `(b, p, q)`. With the batch first and other dimensions last, each entry is a matrix
    of its own, `b x k x m`, with the outputs `(p, q)` as columns.

    A product whose kernel gathers rows of one matrix reads the image itself
    (`nm_tile.async_gather` with `patches`), and so does one whose weight is code
    (`nm_tile.matmul`); for others `--nm-sparse-lower-patches` computes the matrix.

    ```mlir
    %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %image
           : tensor<64x56x56x?xf16> -> tensor<576x?xf16>
    %x = nm_sparse.patches <kernel = [3, 3], image = "bhwc", rows = "rsc"> %image
           : tensor<?x56x56x64xf16> -> tensor<?x576xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$image, NMSparse_PatchesAttr:$patches);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $patches $image attr-dict `:` type($image) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The matrix of an image, or null where the image has a dynamic size other
    /// than its batch, or is smaller than the kernel.
    static ::mlir::RankedTensorType
    inferType(::mlir::RankedTensorType image, ::mlir::nm_sparse::PatchesAttr patches);
    /// The dimensions of the matrix.
    int64_t getRowDim() {
      return getPatches().isTokenMajor() || getPatches().isBatched() ? 1 : 0;
    }
    int64_t getTokenDim() {
      return getPatches().isTokenMajor() ? 0 : getRowDim() + 1;
    }
  }];
}

#endif // NM_SPARSE_OPS_TD
