//===- NMTilePartOps.td - parts of sums, loads of threads --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEPARTOPS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEPARTOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/SumOpInterface.td"

def NMTile_SumWarpsOp : NMTile_Op<"sum_warps",
    [SameOperandsAndResultType,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "add up the shares that the warps have of a tile";
  let description = [{
    Behind the K loop of a product that divides the contraction among its warps:
    each of them, or each group of them, has a share of every element of `shares`,
    and `result` is their sum, which the first one holds. All threads that multiply
    take part, through workgroup memory.

    ```mlir
    %sum = nm_tile.sum_warps %shares : vector<1x32xf32>
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F32, I32]>:$shares);
  let results = (outs VectorOfRankAndType<[2], [F32, I32]>:$result);
  let assemblyFormat = "$shares attr-dict `:` type($shares)";
}

def NMTile_SumCtasOp : NMTile_Op<"sum_ctas",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     NMTile_SumOpInterface]> {
  let summary = "add up what the CTAs of a cluster have of a piece of a tile";
  let description = [{
    Each of the `ctas` CTAs of a cluster has left its share of a tile's sum in its
    own `shares`, by rows; the result is the sum of the shares of a piece, the rows
    from `row` on: of the CTA's own and those of the CTAs behind it, in turn, the
    first of which comes behind the last. Rows are tokens or, where
    `tokens_contiguous`, outputs; columns behind those of the piece are padding.
    Where the piece has rows behind those of `shares`, its elements there are not
    to be used.
    Barriers of the cluster have to stand before it, behind the writes, and behind
    it, before a CTA ends.

    `layout` says which elements of the piece each thread holds.
    --nm-sparse-lay-out-accumulators chooses it so that a warp reads whole rows.

    ```mlir
    %piece = nm_tile.sum_ctas %shares[%row] ctas = 3
      schedule = <tile = [256, 128, 64], product = wgmma<warps = [2, 4]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 4, producers = 4>, grid = flat<split_k = 3, in_cluster = true>>
      : memref<256x136xf32, 3> -> vector<88x128xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$shares, Index:$row,
                       ConfinedAttr<I64Attr, [IntMinValue<2>]>:$ctas,
                       NMTile_ScheduleAttr:$schedule,
                       UnitAttr:$tokens_contiguous,
                       OptionalAttr<NMTile_AccumulatorAttr>:$layout);
  let results = (outs VectorOfRankAndType<[2], [F32, I32]>:$result);
  let assemblyFormat = [{
    $shares `[` $row `]` `ctas` `=` $ctas `schedule` `=` $schedule
    (`tokens_contiguous` $tokens_contiguous^)? (`layout` `=` $layout^)?
    attr-dict `:` type($shares) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NMTile_StorePartOp : NMTile_Op<"store_part",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "leave a part of a tile's sum to another CTA";
  let description = [{
    Writes the whole vector to the last two dimensions of `parts`, at the indices
    of the others. Which element lies where is for the threads to say: each has
    16 bytes side by side, next to those of its neighbour. Only a
    `nm_tile.load_part` of the same kernel can read it.

    ```mlir
    nm_tile.store_part %sum, %parts[%tile, %part]
      : vector<64x128xf32>, memref<?x2x64x128xf32>
    ```
  }];
  let arguments = (ins AnyVectorOfAnyRank:$value, AnyMemRef:$parts,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $value `,` $parts `[` $indices `]` attr-dict
    `:` type($value) `,` type($parts)
  }];
  let hasVerifier = 1;
}

def NMTile_LoadPartOp : NMTile_Op<"load_part",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "read a part of a tile's sum that another CTA has left";
  let description = [{
    What a `nm_tile.store_part` wrote at the same indices.

    ```mlir
    %part = nm_tile.load_part %parts[%tile, %other]
      : memref<?x2x64x128xf32>, vector<64x128xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$parts, Variadic<Index>:$indices);
  let results = (outs AnyVectorOfAnyRank:$value);
  let assemblyFormat = [{
    $parts `[` $indices `]` attr-dict `:` type($parts) `,` type($value)
  }];
  let hasVerifier = 1;
}

def NMTile_PinnedLoadOp : NMTile_Op<"pinned_load",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "read shared memory here, and not later";
  let description = [{
    Reads an element, or neighbours of a row, as `memref.load` and `vector.load`
    do, but keeps its place among the other pinned reads: ptxas would move it to
    where registers are fewest, next to its use.

    ```mlir
    %0 = nm_tile.pinned_load %tile[%row, %column]
      : memref<32x128xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices);
  let results = (outs AnyTypeOf<[AnyVectorOfAnyRank, AnyFloat,
                                 AnySignlessInteger]>:$value);
  let assemblyFormat = [{
    $source `[` $indices `]` attr-dict `:` type($source) `,` type($value)
  }];
  let hasVerifier = 1;
}

def NMTile_ReadOnlyLoadOp : NMTile_Op<"read_only_load",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     AttrSizedOperandSegments]> {
  let summary = "read global memory that the kernel does not write";
  let description = [{
    Reads an element, or neighbours of a row that are at a multiple of their size,
    of at most 16 bytes. What is read `once` leaves no line in L1 to what is read
    again, and L2 fetches the sectors beside it. Where `exists` is given and does not
    hold, nothing is read, and the value is zero.

    ```mlir
    %0 = nm_tile.read_only_load once %values[%i, %j] : memref<4x512xf16>, vector<8xf16>
    %1 = nm_tile.read_only_load %image[%i] exists(%inside) : memref<512xf32>, f32
    ```
  }];
  let arguments = (ins UnitAttr:$once, AnyMemRef:$source,
                       Variadic<Index>:$indices, Optional<I1>:$exists);
  let results = (outs AnyTypeOf<[AnyVectorOfAnyRank, AnyFloat,
                                 AnySignlessInteger]>:$value);
  let assemblyFormat = [{
    (`once` $once^)? $source `[` $indices `]` (`exists` `(` $exists^ `)`)? attr-dict
    `:` type($source) `,` type($value)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "bool":$once, "::mlir::Value":$source,
                   "::mlir::ValueRange":$indices), [{
      build($_builder, $_state, type, once, source, indices, /*exists=*/{});
    }]>
  ];
  let hasVerifier = 1;
}

def NMTile_ProductWaitOp : NMTile_Op<"product_wait",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until the products of a warpgroup are over";
  let description = [{
    Tensor cores read the `metadata` of a sparse product when they come to it, of
    which ptxas knows nothing. So that the words stay in their registers until
    here, each is stored afterwards, on a condition that never holds, which ptxas
    does not know either.

    In a loop, `ahead` asks --nm-sparse-prepare-ahead to make the words of its
    next iteration before this wait. What is still `ahead` where code of threads
    is lowered waits alone.

    ```mlir
    nm_tile.product_wait ahead metadata(%0, %1)
    ```
  }];
  let arguments = (ins UnitAttr:$ahead, Variadic<I32>:$metadata);
  let assemblyFormat = "(`ahead` $ahead^)? `metadata` `(` $metadata `)` attr-dict";
  let hasVerifier = 1;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEPARTOPS_TD
