//===- NMTileOps.td - operations on the tiles of one CTA ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEOPS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/Dialect/NVGPU/IR/NVGPUTypes.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBulkOps.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileLoopOps.td"
include "nm_sparse/Dialect/NMTile/IR/NMTilePartOps.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileRingOps.td"

def NMTile_Tile : AnyTypeOf<[AnyRankedTensor, AnyMemRef]>;

def NMTile_AlignRowsOp : NMTile_Op<"align_rows",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "rows that begin at multiples of so many bytes";
  let description = [{
    `src`, if its rows begin at multiples of `alignment` bytes in memory; else a
    copy of it whose rows do. Which of the two is known at run time alone, since a
    caller chooses the distance of rows. It is decided by strides and offset: a
    buffer is taken to start at such a multiple. On buffers the copy is made in
    `dst`. Copies of 16 bytes need an alignment of 16; with 32, no two copies share
    a sector of L2 with a third. That pays for long rows alone: with `from`, rows of
    fewer elements stay where they are if they begin at multiples of 16 bytes. With
    `always`, it is a copy in any case: a tensor map is made of a buffer that is
    known before the launch.

    ```mlir
    %a = nm_tile.align_rows alignment = 16 ins(%x : tensor<4096x?xf16>)
           -> tensor<4096x?xf16>
    %b = nm_tile.align_rows alignment = 16 ins(%x : memref<4096x?xf16>)
           outs(%copy : memref<4096x?xf16, strided<[?, 1]>>)
           -> memref<4096x?xf16, strided<[?, 1], offset: ?>>
    %c = nm_tile.align_rows alignment = 32 from 512 ins(%x : tensor<4096x?xf16>)
           -> tensor<4096x?xf16>
    ```
  }];
  let arguments = (ins NMTile_Tile:$src, Optional<AnyMemRef>:$dst,
                       I64Attr:$alignment, OptionalAttr<I64Attr>:$from,
                       UnitAttr:$always);
  let results = (outs NMTile_Tile:$result);
  let assemblyFormat = [{
    `alignment` `=` $alignment (`from` $from^)? (`always` $always^)? `ins` `(` $src `:` type($src) `)`
    (`outs` `(` $dst^ `:` type($dst) `)`)? attr-dict `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns true if rows without gaps between them are copied, with `extent`
    /// elements where their number is dynamic.
    bool copiesRows(int64_t extent);
  }];
}

def NMTile_PermutedViewOp : NMTile_Op<"permuted_view",
    [Pure, AllTypesMatch<["source", "result"]>,
     DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "a tensor or buffer whose places are those of another in order";
  let description = [{
    What lies at place `j` of dimension `dim` of the result lies at place `perm[j]`
    of the source, in the same memory. A tile that a kernel writes to the view, or
    reads of it, is thereby put where it belongs: the permutation is an address.
    Only the tiles of a product may be written and read that way.

    `inverse` is the tensor behind a view that a kernel has written: the place
    `perm[j]` of the result is place `j` of the source. A batch of permutations has
    a second dimension, in front: place `(b, j)` is for entry `b` of dimension
    `batch`.

    ```mlir
    %v = nm_tile.permuted_view %r, %perm dim = 1 : memref<?x64xf16>, memref<64xi32>
    %t = memref.subview %v[%i, %j] [16, 32] [1, 1] : ...
    vector.transfer_write %tile, %t[%c0, %c0] : vector<16x32xf16>, ...
    ```
  }];
  let arguments = (ins NMTile_Tile:$source, NMTile_Tile:$perm, I64Attr:$dim,
                       OptionalAttr<I64Attr>:$batch, UnitAttr:$inverse);
  let results = (outs NMTile_Tile:$result);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $source `,` $perm `dim` `=` $dim
    (`batch` `=` $batch^)? attr-dict `:` type($source) `,` type($perm)
  }];
  let hasVerifier = 1;
}

def NMTile_InterleavedViewOp : NMTile_Op<"interleaved_view",
    [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "rows of the entries of a batch in turns";
  let description = [{
    The rows of B matrices of P x F, such as the pixels of NHWC images, as one
    matrix of (P * B) x F in the same memory: row `p * B + b` is row `p` of entry
    `b`. A tile that a kernel writes to the view, or reads of it, is thereby put
    where it belongs. Only the tiles of a product may be written and read that way.

    `inverse` is the tensor of B x P x F behind a view that a kernel has written.

    ```mlir
    %v = nm_tile.interleaved_view %r : memref<16x49x64xf16> to memref<784x64xf16>
    %t = memref.subview %v[%i, %j] [128, 64] [1, 1] : ...
    vector.transfer_write %tile, %t[%c0, %c0] : vector<128x64xf16>, ...
    ```
  }];
  let arguments = (ins NMTile_Tile:$source, UnitAttr:$inverse);
  let results = (outs NMTile_Tile:$result);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $source attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def NMTile_AsyncCopyOp : NMTile_Op<"async_copy",
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy a tile into workgroup memory";
  let description = [{
    All threads of the CTA together, or the `threads = [first, count]` of it,
    start to copy `src` (global memory, possibly smaller than the tile at the
    ragged edge) into `dst` (workgroup memory, static shape) and fill the rest of
    `dst` with zeros. `indexing_maps` says how the two dimensions `(r, c)` of the
    tile lie in `src` and in `dst`; without them as `(r, c)` in both. The data may
    be read after a wait on the group that holds the copy and a barrier, or behind
    an mbarrier that tracks the copy. A tile of rank 3 is a component of bitmaps,
    blocks of outputs x tiles along the contraction x what a tile has, and lies in
    `dst` in blocks of columns (`TileLayout::ColumnBlocks`).

    With `rows_of`, `src` is an index of that `n:m` encoding, from a window on,
    and instead of the position at `[r, p]` what is stored is where that block
    begins in the dense operand, `(r / n * m + src[r, p]) * bk`, as i16 or i32;
    the rest of `dst` is all ones, a row that no operand has.

    With `patches`, `src` is an image, and what is copied is a part of the matrix
    that `nm_sparse.patches` makes of it, `slice` as in `nm_tile.async_gather`.

    ```mlir
    nm_tile.async_copy ins(%src : memref<?x?xf16, strided<[4096, 1], offset: ?>>)
                         outs(%dst : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let arguments = (ins NMTile_Tile:$src, NMTile_Tile:$dst,
                       OptionalAttr<AffineMapArrayAttr>:$indexing_maps,
                       OptionalAttr<NMSparse_EncodingAttr>:$rows_of,
                       OptionalAttr<DenseI64ArrayAttr>:$threads,
                       OptionalAttr<NMSparse_PatchesAttr>:$patches,
                       Variadic<Index>:$slice);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`indexing_maps` `=` $indexing_maps^)? (`rows_of` `=` $rows_of^)?
    (`threads` `=` $threads^)?
    (`patches` `=` $patches^ `slice` `[` $slice `]`)?
    `ins` `(` $src `:` type($src) `)`
    `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
    /// Returns true if rows of `src` are columns of `dst`.
    bool isTransposed();
  }];
}

def NMTile_AsyncGatherOp : NMTile_Op<"async_gather",
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy what an index names along one dimension";
  let description = [{
    All threads of the CTA together, or the `threads = [first, count]` of it,
    start to copy to `dst`, for each panel `p` and kept row `r` of one level of an
    encoding, the rows of `src` that `index` names:

    `dst[p * R + r, c] = src[((r / bk) / n * m + index[r / bk, p]) * bk + r % bk, c]`

    for the `n:m` and block `[bk, bn]` of the level. `indexing_maps` says how the
    dimensions `(r, c)` lie in `src` and in `dst`; without them as `(r, c)` in
    both. `R` is the extent of the gathered dimension of `dst` over the number of
    panels: `panels`, or that of the index's columns. Blocks and panels that the index does not have and
    elements outside `src` are zero. `index` lies in global or workgroup memory
    and is read at once.

    `src`, `index` and `dst` begin with a window. Or, with `by_row`, `index` is a
    part of what an async_copy with `rows_of` stored, and says where each block
    begins in `src`, so that `dst` may begin with any block:

    `dst[p * R + r, c] = src[index[r / bk, p] + r % bk, c]`

    `in_bounds` then promises that `src` has all these rows.

    With `patches`, `src` is an image, and what is gathered are rows of the matrix
    that `nm_sparse.patches` makes of it, `slice` from row and column
    `[%row, %token]` on, with as many rows and columns as the other two numbers
    say. No matrix is stored: each element is read where it lies in the image. Of
    token-major patches columns are gathered, from `[%token, %row]` on.

    ```mlir
    nm_tile.async_gather #nm_sparse.encoding<8:32, block = [1, 128]>
      ins(%x, %i : memref<128x128xf16, strided<[?, 1], offset: ?>>,
                   memref<32x1xi8, strided<[1, 1], offset: ?>, #gpu.address_space<workgroup>>)
      outs(%dst : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let arguments = (ins NMSparse_EncodingAttr:$encoding,
                       DefaultValuedAttr<I64Attr, "0">:$level,
                       OptionalAttr<AffineMapArrayAttr>:$indexing_maps,
                       OptionalAttr<I64Attr>:$panels,
                       UnitAttr:$by_row, UnitAttr:$in_bounds,
                       OptionalAttr<DenseI64ArrayAttr>:$threads,
                       OptionalAttr<NMSparse_PatchesAttr>:$patches,
                       NMTile_Tile:$src, NMTile_Tile:$index, NMTile_Tile:$dst,
                       Variadic<Index>:$slice);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $encoding (`level` `=` $level^)? (`indexing_maps` `=` $indexing_maps^)?
    (`panels` `=` $panels^)?
    (`by_row` $by_row^)? (`in_bounds` $in_bounds^)? (`threads` `=` $threads^)?
    (`patches` `=` $patches^ `slice` `[` $slice `]`)?
    `ins` `(` $src `,` $index `:` type($src) `,` type($index) `)`
    `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
    /// The dimensions of `src` and of `dst` that are gathered.
    int64_t getSrcDim();
    int64_t getDstDim();
    /// Returns true if rows of `src` are columns of `dst`.
    bool isTransposed() { return getSrcDim() != getDstDim(); }
    /// Panels that `dst` holds; dynamic when only the index could say.
    int64_t getDstPanels();
  }];
}

def NMTile_TileMatmulOp : NMTile_Op<"matmul",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     NMTile_SumOpInterface,
     AttrSizedOperandSegments]> {
  let summary = "one K step of a CTA's product, accumulated in registers";
  let description = [{
    `acc + lhs * rhs` for one K step of the CTA tile. `acc` is the whole tile as one
    `vector<m x n>`, where m counts tokens and n outputs; the schedule says how the
    CTA's threads share it. Which sparse operand an operand came from, and how it
    was gathered, is the transfers' business.

    `indexing_maps` says how the dimensions `(m, n, k)` lie in `lhs` and in `rhs`.
    Without them both have the contraction outermost, `(k, m)` and `(k, n)`
    ("MN-major").

    Behind `lhs` come the components of the weight, those that the storage has for
    a step. Without `storage` these are the R kept rows of the step, where rows past
    the index's extent are zero, and the positions of these rows. `lhs` then holds
    whole windows, from which the product selects rows by position; or, when
    `condensed`, the gathered rows, R for each panel of outputs, and there are no
    positions. The place `panel_offset` is the position of the tile's first output
    in its panel; absent when panels and tiles are aligned.

    With `storage`, the components are those of the stored tiles that the step has.
    `lhs` holds the rows of these tiles, and what fills its lines up is not read. Of
    two levels it is `condensed`, the rows that the outer one keeps, and the
    components are those of the inner one. Of `free` elements only the weight says
    where those of a step are: the components are whole, and the place `first_row`
    says which step it is.

    With `patches`, of a product whose weight is code, `lhs` is an image, and what is
    multiplied are rows of the matrix that `nm_sparse.patches` makes of it, `slice`
    as in `nm_tile.async_gather`; where the batch comes first, of its first entry.

    `tokens_contiguous` asks for the accumulator layout in which one thread holds
    neighbouring tokens rather than neighbouring outputs, for a feature-major
    result. `layout` is what came of it: which elements each thread holds.
    --nm-sparse-lay-out-accumulators asks the product for it.

    `in_flight` lets a product of warpgroups go on behind the operation: it waits
    only for the product before it, so that tiles are read, and the result is
    there, when the next one, or a wait for all, is over.

    ```mlir
    %r = nm_tile.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
           schedule = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
           condensed
           ins(%x, %v : memref<32x128xf16, 3>, memref<32x128xf16, 3>)
           acc(%a : vector<128x128xf32>) -> vector<128x128xf32>
    ```
  }];
  let arguments = (ins NMSparse_EncodingAttr:$encoding,
                       NMTile_ScheduleAttr:$schedule,
                       UnitAttr:$condensed,
                       OptionalAttr<AffineMapArrayAttr>:$indexing_maps,
                       UnitAttr:$tokens_contiguous, UnitAttr:$in_flight,
                       NMTile_Tile:$lhs, Variadic<NMTile_Tile>:$components,
                       Variadic<Index>:$places,
                       VectorOfRankAndType<[2], [F32, I32]>:$acc,
                       Variadic<Index>:$slice,
                       OptionalAttr<NMSparse_WeightStorageInterface>:$storage,
                       OptionalAttr<NMSparse_PatchesAttr>:$patches,
                       OptionalAttr<StrArrayAttr>:$place_names,
                       OptionalAttr<NMTile_AccumulatorAttr>:$layout);
  let results = (outs VectorOfRankAndType<[2], [F32, I32]>:$result);
  let assemblyFormat = [{
    $encoding (`storage` `=` $storage^)? `schedule` `=` $schedule (`condensed` $condensed^)?
    (`indexing_maps` `=` $indexing_maps^)?
    (`tokens_contiguous` $tokens_contiguous^)? (`in_flight` $in_flight^)?
    `ins` `(` $lhs (`,` $components^)? `:` type($lhs) (`,` type($components)^)? `)`
    (`at` `` custom<Places>($places, $place_names)^)?
    (`patches` `=` $patches^ `slice` `[` $slice `]`)?
    `acc` `(` $acc `:` type($acc) (`in` $layout^)? `)` attr-dict `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The contiguous dimension of (m, k) and of (k, n): MN where the
    /// contraction is outermost.
    MajorOrder getLhsOrder();
    MajorOrder getRhsOrder();
    /// The kept values, the first component.
    Value getRhs() { return getComponents().front(); }
    /// The component that says where they are; null where a condensed lhs needs
    /// none.
    Value getIndex() {
      return getComponents().size() > 1 ? getComponents()[1] : Value();
    }
    /// The place of that name; null where there is none.
    Value getPlace(StringRef name);
    /// How the components are stored: `storage`, or the canonical form.
    WeightStorageInterface getForm();
    /// The tiles that the weight is stored in; none where it lies in panels.
    std::optional<BitmapTile> getStoredTile();
  }];
}

def NMTile_PrefetchOp : NMTile_Op<"prefetch",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "ask L2 for the front of a buffer";
  let description = [{
    The first `ctas` CTAs of a launch ask L2 for the first bytes of `src`, as
    many as its extents say or `bytes` for each CTA, in pieces of 2048 that they
    take turns with. Nothing waits for them, and no value depends on them: the
    operation can stand ahead of the wait for what writes `src`, and be removed.

    ```mlir
    nm_tile.prefetch %x, 16384 of 132 : memref<1024x?xf16>
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

def NMTile_HintsOp : NMTile_Op<"hints",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "what passes may use to make a kernel faster";
  let description = [{
    Stands in a kernel and says what its code no longer shows: how many
    `accumulators` a thread keeps through the K loop, if there is one that runs
    more than once, or how many `registers` it needs to have all reads of global
    memory on their way at once that it begins together, and the buffers, or their
    tensor maps, whose fronts its first K steps read, those that hold positions
    first. `has_sm`, set when the kernel's shared memory is known, says that each
    CTA has an SM to itself. `shares_launch` says that the kernel does little for
    each launch, and that none of its CTAs waits for another, so that it gains
    by a launch in common with others (`--nm-sparse-merge-launches`).

    A kernel without hints is right, and may be slower. `--nm-sparse-overlap-launches`
    erases them.

    ```mlir
    nm_tile.hints accumulators = 128 has_sm streams(%i, %v : memref<64x32xi8>, memref<64x4096xf16>)
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$accumulators,
                       OptionalAttr<I64Attr>:$registers, UnitAttr:$has_sm,
                       UnitAttr:$shares_launch,
                       Variadic<AnyType>:$streams);
  let assemblyFormat = [{
    (`accumulators` `=` $accumulators^)? (`registers` `=` $registers^)?
    (`has_sm` $has_sm^)? (`shares_launch` $shares_launch^)?
    (`streams` `(` $streams^ `:` type($streams) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEOPS_TD
