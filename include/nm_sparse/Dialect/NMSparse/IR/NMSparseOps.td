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
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/Dialect/NVGPU/IR/NVGPUTypes.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td"

class NMSparse_Op<string mnemonic, list<Trait> traits = []>
    : Op<NMSparse_Dialect, mnemonic, traits>;

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
    smaller position. `docs/Encoding.md` says how two levels are chosen together.
    The result type may carry the encoding.

    ```mlir
    %p = nm_sparse.prune #nm_sparse.encoding<2:4> %w
         : tensor<64x64xf32> to tensor<64x64xf32, #nm_sparse.encoding<2:4>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$weight, NMSparse_EncodingAttr:$encoding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $encoding $weight attr-dict `:` type($weight) `to` type($result)
  }];
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
    With a second level, `inner_index` follows.

    ```mlir
    %v, %i = nm_sparse.pack #nm_sparse.encoding<8:32, block = [1, 128]> %w
      : tensor<4096x4096xf16> to tensor<1024x4096xf16>, tensor<1024x32xi8>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$weight, NMSparse_EncodingAttr:$encoding);
  let results = (outs Variadic<AnyRankedTensor>:$components);
  let assemblyFormat = [{
    $encoding $weight attr-dict `:` type($weight) `to` type($components)
  }];
  let builders = [OpBuilder<(ins "Value":$weight, "EncodingAttr":$encoding)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The component of that name; the weight has one.
    Value getComponent(StringRef name);
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
    [DestinationStyleOpInterface, Pure,
     DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
       ["reifyResultShapes"]>,
     DeclareOpInterfaceMethods<TilingInterface,
       ["getLoopIteratorTypes", "getIterationDomain",
        "getTiledImplementation", "getResultTilePosition",
        "generateResultTileValue", "getIterationDomainTileFromResultTile"]>]> {
  let summary = "product of activations with a packed N:M-sparse weight";
  let description = [{
    `init + x * w`, where `w` is given in packed form. Products are accumulated
    in f32 (i32 for i8 operands) whatever the type of `init`.

    Loops are `(m, n, k)`, or `(b, m, n, k)` with a batch: `m` counts tokens, `n`
    outputs. `indexing_maps` holds one map each for `x`, the logical weight and
    the result. The weight's map is `(k, n)`, or `(b, k, n)` when each batch has
    a weight of its own, because the packed form is canonical; the other two may
    be any permutation of their dimensions, so each transposition is a map.

    `contraction_size` is the dense extent of `k`; it may end inside the last
    window.

    Its iteration domain for tiling is `([b,] m, n, w)` where `w` counts windows:
    a tile always consists of whole windows. A tile may start inside a panel;
    `panel_offset` is then the position of its first output in that panel. It is
    absent on whole matmuls, on tiles that start with a panel, and on tiles that
    lie inside one.

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
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$values,
                       AnyRankedTensor:$index, AnyRankedTensor:$init,
                       Optional<Index>:$panel_offset,
                       NMSparse_EncodingAttr:$encoding,
                       AffineMapArrayAttr:$indexing_maps,
                       OptionalAttr<NMSparse_ScheduleAttr>:$schedule);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $encoding `indexing_maps` `=` $indexing_maps
    (`schedule` `=` $schedule^)?
    `ins` `(` $x `,` $values `,` $index `:` type($x) `,` type($values) `,`
              type($index) `)`
    `outs` `(` $init `:` type($init) `)`
    (`panel_offset` `(` $panel_offset^ `)`)? attr-dict `->` type($result)
  }];
  // Of a whole matmul, which has no panel offset.
  let builders = [OpBuilder<(ins "Type":$result, "Value":$x, "Value":$values,
      "Value":$index, "Value":$init, "EncodingAttr":$encoding,
      "ArrayAttr":$indexing_maps, "ScheduleAttr":$schedule), [{
    build($_builder, $_state, result, x, values, index, init,
          /*panel_offset=*/Value(), encoding, indexing_maps, schedule);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    AffineMap getXMap();
    AffineMap getWeightMap();
    AffineMap getResultMap();
    bool hasBatch() { return getXMap().getNumDims() == 4; }
    /// True when each batch entry has a weight of its own.
    bool hasBatchedWeight() { return getWeightMap().getNumResults() == 3; }
    /// Position of loop `m`; `n` and the reduction follow it.
    unsigned getTokenLoop() { return hasBatch() ? 1 : 0; }
    unsigned getOutputLoop() { return getTokenLoop() + 1; }
    unsigned getReductionLoop() { return getTokenLoop() + 2; }
    /// Dimension of `x` that loop `k` indexes.
    int64_t getXReductionDim();
    /// Dimension of `x` that loop `m` indexes.
    int64_t getXTokenDim();
    /// Number of windows along the contraction dimension.
    int64_t getNumWindows();
    /// Dense extent of loop `k` (may be dynamic on tiles).
    int64_t getContractionSize();
    /// True when `x` is stored with consecutive tokens beside each other.
    bool isXFeatureMajor();
    /// True when the result has consecutive tokens beside each other.
    bool isResultFeatureMajor();
  }];
}

//===----------------------------------------------------------------------===//
// Operations on the tiles of one CTA
//===----------------------------------------------------------------------===//

def NMSparse_Tile : AnyTypeOf<[AnyRankedTensor, AnyMemRef]>;

def NMSparse_AsyncCopyOp : NMSparse_Op<"async_copy",
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy a tile into workgroup memory";
  let description = [{
    All threads of the CTA together, or the `threads = [first, count]` of it,
    start to copy `src` (global memory, possibly smaller than the tile at the
    ragged edge) into `dst` (workgroup memory, static shape) and fill the rest of
    `dst` with zeros. With `transposed`, element `[i, j]` of the source goes to
    `[j, i]`. The data may be read after a wait on the group that holds the copy
    and a barrier, or behind an mbarrier that tracks the copy.

    ```mlir
    nm_sparse.async_copy ins(%src : memref<?x?xf16, strided<[4096, 1], offset: ?>>)
                         outs(%dst : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let arguments = (ins NMSparse_Tile:$src, NMSparse_Tile:$dst,
                       UnitAttr:$transposed,
                       OptionalAttr<DenseI64ArrayAttr>:$threads);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`transposed` $transposed^)? (`threads` `=` $threads^)?
    `ins` `(` $src `:` type($src) `)`
    `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
  }];
}

def NMSparse_BulkCopyOp : NMSparse_Op<"bulk_copy",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy a box of a tensor map into workgroup memory";
  let description = [{
    The first thread of the CTA, or of the `threads = [first, count]` of it, arrives
    on `mbarrier`, announces the bytes of `dst` there, and lets the tensor memory
    accelerator copy `dst` from the global tensor that `map` describes, from
    `coordinates` on. What lies outside the tensor arrives as zeros. Each box of
    the map holds all rows and 64 columns of `dst`, which is stored as
    `TileLayout::SwizzledBlocks`: the swizzle of the map is that of the products.

    ```mlir
    nm_sparse.bulk_copy threads = [256, 128]
      ins(%map[%k, %n] : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, ...>)
      outs(%dst : memref<64x256xf16, #gpu.address_space<workgroup>>)
      mbarrier(%full : !llvm.ptr<3>)
    ```
  }];
  let arguments = (ins NVGPU_TensorMapDescriptor:$map,
                       Variadic<Index>:$coordinates, AnyMemRef:$dst,
                       Optional<LLVM_AnyPointer>:$mbarrier,
                       OptionalAttr<DenseI64ArrayAttr>:$threads);
  let assemblyFormat = [{
    (`threads` `=` $threads^)?
    `ins` `(` $map `[` $coordinates `]` `:` type($map) `)`
    `outs` `(` $dst `:` type($dst) `)`
    (`mbarrier` `(` $mbarrier^ `:` type($mbarrier) `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
    /// Bytes that arrive, those outside the tensor too.
    int64_t getBytes();
  }];
}

def NMSparse_AsyncGatherOp : NMSparse_Op<"async_gather",
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy the activation rows that an index names";
  let description = [{
    All threads of the CTA together, or the `threads = [first, count]` of it,
    start to copy, for each panel `p` and kept row `r`, one row of `src` into
    `dst`:

    `dst[p * R + r, t] = src[(r / n) * m + index[r, p], t]`

    where `R` is the number of rows of `dst` over the number of panels: `panels`,
    or that of the index's columns. Rows and panels that the index does not have
    and elements outside `src` are zero. With `transposed`, `src` is token-major: `src[t, k]`. `index` lies in
    global or workgroup memory and is read at once.

    ```mlir
    nm_sparse.async_gather #nm_sparse.encoding<8:32, block = [1, 128]>
      ins(%x, %i : memref<128x128xf16, strided<[?, 1], offset: ?>>,
                   memref<32x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
      outs(%dst : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let arguments = (ins NMSparse_EncodingAttr:$encoding, NMSparse_Tile:$src,
                       NMSparse_Tile:$index, NMSparse_Tile:$dst,
                       UnitAttr:$transposed,
                       OptionalAttr<I64Attr>:$panels,
                       OptionalAttr<DenseI64ArrayAttr>:$threads);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $encoding (`transposed` $transposed^)? (`panels` `=` $panels^)?
    (`threads` `=` $threads^)?
    `ins` `(` $src `,` $index `:` type($src) `,` type($index) `)`
    `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
    /// Panels that `dst` holds; dynamic when only the index could say.
    int64_t getDstPanels();
  }];
}

def NMSparse_TileMatmulOp : NMSparse_Op<"tile_matmul",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     AttrSizedOperandSegments]> {
  let summary = "one K step of a CTA's product, accumulated in registers";
  let description = [{
    `acc + x * w` for one K step of the CTA tile. `acc` is the whole tile as one
    `vector<tokens x outputs>`; the schedule says how the CTA's threads share it.

    `values` holds the kept rows of the step, `R x outputs`; rows past the index's
    extent are zero. `x` holds either whole windows (`rows x tokens`, or
    `tokens x rows` when `token_major`), from which `index` selects, or, when
    `condensed`, the gathered rows, `R` for each panel, in which case no index is
    needed. `panel_offset` is the position of the tile's first output in its
    panel; absent when panels and tiles are aligned.

    `tokens_contiguous` asks for the accumulator layout in which one thread holds
    neighbouring tokens rather than neighbouring outputs, for a feature-major
    result.

    `in_flight` lets a product of warpgroups go on behind the operation: it waits
    only for the product before it, so that tiles are read, and the result is
    there, when the next one, or a wait for all, is over.

    ```mlir
    %r = nm_sparse.tile_matmul #nm_sparse.encoding<8:32, block = [1, 128]>
           schedule = #nm_sparse.schedule<mma, tile = [128, 128, 4], warps = [2, 4],
             stages = 3, split_k = 1, operands = packed, index = resident>
           condensed
           ins(%x, %v : memref<32x128xf16, 3>, memref<32x128xf16, 3>)
           acc(%a : vector<128x128xf32>) -> vector<128x128xf32>
    ```
  }];
  let arguments = (ins NMSparse_EncodingAttr:$encoding,
                       NMSparse_ScheduleAttr:$schedule,
                       UnitAttr:$condensed, UnitAttr:$token_major,
                       UnitAttr:$tokens_contiguous, UnitAttr:$in_flight,
                       NMSparse_Tile:$x, NMSparse_Tile:$values,
                       Optional<NMSparse_Tile>:$index,
                       Optional<Index>:$panel_offset,
                       VectorOfRankAndType<[2], [F32, I32]>:$acc);
  let results = (outs VectorOfRankAndType<[2], [F32, I32]>:$result);
  let assemblyFormat = [{
    $encoding `schedule` `=` $schedule (`condensed` $condensed^)?
    (`token_major` $token_major^)? (`tokens_contiguous` $tokens_contiguous^)?
    (`in_flight` $in_flight^)?
    `ins` `(` $x `,` $values `:` type($x) `,` type($values) `)`
    (`index` `(` $index^ `:` type($index) `)`)?
    (`panel_offset` `(` $panel_offset^ `)`)?
    `acc` `(` $acc `:` type($acc) `)` attr-dict `->` type($result)
  }];
  let hasVerifier = 1;
}

def NMSparse_PrefetchOp : NMSparse_Op<"prefetch",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "ask L2 for the front of a buffer";
  let description = [{
    The first `ctas` CTAs of a launch ask L2 for the first bytes of `src`, as
    many as its extents say or `bytes` for each CTA, in pieces of 2048 that they
    take turns with. Nothing waits for them, and no value depends on them: the
    operation can stand ahead of the wait for what writes `src`, and be removed.

    ```mlir
    nm_sparse.prefetch %x, 16384 of 132 : memref<1024x?xf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$src, I64Attr:$bytes, I64Attr:$ctas);
  let assemblyFormat = "$src `,` $bytes `of` $ctas attr-dict `:` type($src)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes that one thread asks for.
    static constexpr int64_t kPieceBytes = 2048;
    /// A contiguous buffer of whole bytes in global memory.
    static bool canPrefetch(MemRefType type);
  }];
}

#endif // NM_SPARSE_OPS_TD
