//===- Schedule.td - how a product is mapped to the GPU ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "nm_sparse/Dialect/NMSparse/IR/MatmulConfig.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/ScheduleInterfaces.td"

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

def NMTile_TransfersAttr : NMTile_Attr<"Transfers", "transfers"> {
  let summary = "how each operand comes to where the product reads it";
  let description = [{
    | field | meaning | legal | default |
    |---|---|---|---|
    | `x` | the activations | `copy`, `gather`, `direct`; `bulk` with the other two | `gather` |
    | `values` | the kept values of the weight | `copy`, `direct`; `bulk` with a `ring`, for tensor cores, if a K step has a multiple of 16 kept rows, at most 256, and a tile has a multiple of 64 outputs | `copy` |
    | `index` | the positions of the weight | `resident`, `staged`, `direct`; `rows` with `x = gather`; `bulk` with the other two | `resident` |

    Each is a name of `lib/Transfers`, or an attribute of another dialect that
    implements `TransferAttrInterface`. A product says which it can read.
  }];
  let parameters = (ins
    "::mlir::nm_sparse::TransferAttrInterface":$x,
    "::mlir::nm_sparse::TransferAttrInterface":$values,
    "::mlir::nm_sparse::TransferAttrInterface":$index
  );
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The transfers of the nm_tile dialect that have these names; null where
    /// one is not in this build.
    static TransfersAttr getNamed(::mlir::MLIRContext *context,
                                  ::llvm::StringRef x,
                                  ::llvm::StringRef values,
                                  ::llvm::StringRef index);

    TransferAttrInterface get(OperandRole role) const;

    /// All transfers of the dialect, and those of these that are of another:
    /// what may have operations in a kernel.
    ::llvm::SmallVector<TransferAttrInterface> getAll() const;

    /// Returns true if the product reads all operands from global memory.
    bool areDirect() const;
    /// Returns true if the tensor memory accelerator copies all operands.
    bool areBulk() const;
    /// Returns true if threads copy all operands, whole and step by step.
    bool areCopied() const;
  }];
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def NMTile_SequentialAttr : NMTile_Attr<"Sequential", "sequential",
    [DeclareAttrInterfaceMethods<NMTile_PipelineAttrInterface,
                                 ["getNumStages"]>]> {
  let summary = "one K step after the other";
  let description = [{
    This pipeline is for products that read global memory themselves: all transfers
    are `direct`, and nothing is copied ahead.
  }];
}

def NMTile_AsyncGroupsAttr : NMTile_Attr<"AsyncGroups", "async_groups",
    [DeclareAttrInterfaceMethods<NMTile_PipelineAttrInterface,
                                 ["getNumStages"]>]> {
  let summary = "every warp copies and multiplies";
  let description = [{
    Each thread waits for its own groups of `cp.async`, and then for all other
    threads.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `stages` | K steps in shared memory: one is multiplied while the others are copied | 2 to 8, as far as shared memory allows | must be given |
  }];
  let parameters = (ins "int64_t":$stages);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NMTile_RingAttr : NMTile_Attr<"Ring", "ring",
    [DeclareAttrInterfaceMethods<NMTile_PipelineAttrInterface,
                                 ["getNumStages", "getProducerWarps"]>]> {
  let summary = "some warps copy, the others multiply";
  let description = [{
    Producers fill the slots of a ring in shared memory; consumers multiply and free
    them. Each slot has an mbarrier for each direction. Needs sm_90 or newer.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `stages` | slots of the ring, with a K step in each | 2 to 8, as far as shared memory allows | must be given |
    | `producers` | warps that only copy, in addition to those of the product | 1 to 32 less the warps of the product; `wgmma`: a multiple of 4 | must be given |
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$producers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

def NMTile_FlatGridAttr : NMTile_Attr<"FlatGrid", "flat",
    [DeclareAttrInterfaceMethods<NMTile_GridAttrInterface,
        ["getParts", "getClusterCTAs", "exchangesInCluster"]>]> {
  let summary = "a CTA for each tile";
  let description = [{
    | field | meaning | legal | default |
    |---|---|---|---|
    | `split_k` | CTAs that divide a tile along the contraction; the last one to finish adds their partial sums, always in the same order | 1 to 64; times the batch at most 65535 | 1 |
    | `in_cluster` | the CTAs of a tile are a cluster. Each adds the partial sums of its own piece of the tile, which it reads from the shared memory of the others, and writes the results of that piece; nothing goes through device memory | `true` needs sm_90 or newer, `split_k` from 2 to 8, `cluster = 1`, and a product each of whose threads has elements of its own | `false` |
    | `cluster` | CTAs that run as a cluster: each copies a slice for all of them, so L2 delivers the data once. With `x = bulk` the CTAs are neighbours along outputs and share activations. If `wgmma_sp` has `x = gather`, they are neighbours along tokens and share values | 1, 2, 4 or 8. More than 1 needs sm_90 or newer, a `ring`, an undivided contraction, and a number of tiles along that dimension that is a multiple of it. The shared data must divide into as many slices of 8 tokens (with feature-major activations, of 8 rows of a K step), or of 16 kept rows of a K step | 1 |
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$splitK,
                        DefaultValuedParameter<"bool", "false">:$inCluster,
                        DefaultValuedParameter<"int64_t", "1">:$cluster);
  // Without clusters.
  let builders = [AttrBuilder<(ins "int64_t":$splitK), [{
    return $_get($_ctxt, splitK, /*inCluster=*/false, /*cluster=*/1);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NMTile_PersistentGridAttr : NMTile_Attr<"PersistentGrid", "persistent",
    [DeclareAttrInterfaceMethods<NMTile_GridAttrInterface,
        ["getParts", "getClusterCTAs", "isPersistentGrid",
         "streamsContraction"]>]> {
  let summary = "a CTA for each SM, which goes from tile to tile";
  let description = [{
    Producers fetch the next tile while consumers write the last one, so it needs a
    `ring`.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `split_k` | CTAs that divide a tile along the contraction | 1 to 64 | 1 |
    | `stream_k` | the CTAs divide the tiles of the last one or two waves along the contraction, so that all take the same number of K steps. The second of the two CTAs of a tile adds the partial sum of the first. Runs agree in every bit, but the last bits of a token depend on the number of tokens | `true` needs `split_k = 1` | `false` |
    | `cluster` | CTAs that run as a cluster: each copies a slice for all of them, so L2 delivers the data once. With `x = bulk` the CTAs are neighbours along outputs and share activations. If `wgmma_sp` has `x = gather`, they are neighbours along tokens and share values | 1, 2, 4 or 8. More than 1 needs sm_90 or newer, a `ring`, an undivided contraction, and a number of tiles along that dimension that is a multiple of it. The shared data must divide into as many slices of 8 tokens (with feature-major activations, of 8 rows of a K step), or of 16 kept rows of a K step | 1 |
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$splitK,
                        DefaultValuedParameter<"bool", "false">:$streamK,
                        DefaultValuedParameter<"int64_t", "1">:$cluster);
  // Without clusters.
  let builders = [AttrBuilder<(ins "int64_t":$splitK, "bool":$streamK), [{
    return $_get($_ctxt, splitK, streamK, /*cluster=*/1);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def NMTile_ScheduleAttr : NMTile_Attr<"Schedule", "schedule",
    [DeclareAttrInterfaceMethods<NMSparse_MatmulConfigInterface,
                                 ["verifyConfig"]>]> {
  let summary = "how one matmul is mapped to the GPU";
  let description = [{
    A schedule holds every decision about one `nm_sparse.matmul`.
    `--nm-sparse-select-schedule` makes it, unless the op has one already. The fields
    may come in any order.

    | field | meaning | legal | default |
    |---|---|---|---|
    | `tile` | `[tokens, outputs, rows]`: the tokens and outputs of the result that a CTA computes at a time, and the kept rows of the weight that one step along the contraction (a K step) multiplies | 1 to 4096 each; up to 1048576 rows of `free` elements. Tokens and outputs are a multiple of the tile that the warps of the product multiply at once. Rows are a multiple of the `n * bk` of a window or, with `index = rows`, of the `bk` of a block and of the rows that the product multiplies at once | must be given |
    | `product` | what multiplies | an attribute below, or one of another dialect that implements `ProductAttrInterface` | must be given |
    | `transfers` | `{x = ..., values = ..., index = ...}`: how each operand comes to where the product reads it | below | `{x = gather, values = copy, index = resident}` |
    | `pipeline` | how copies and products overlap | `sequential`, `async_groups`, `ring` | must be given |
    | `grid` | which tiles a CTA computes | `flat`, `persistent` | `flat` |

    ```mlir
    #nm_tile.schedule<tile = [256, 128, 64], product = wgmma<warps = [2, 4]>,
      transfers = {x = gather, values = bulk, index = resident},
      pipeline = ring<stages = 4, producers = 4>, grid = persistent>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$tile,
    "::mlir::nm_sparse::ProductAttrInterface":$product,
    "::mlir::nm_sparse::TransfersAttr":$transfers,
    "::mlir::nm_sparse::PipelineAttrInterface":$pipeline,
    "::mlir::nm_sparse::GridAttrInterface":$grid
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Most tokens, outputs and rows of a tile, for products that keep it in
    /// shared memory.
    static constexpr int64_t kMostExtent = 4096;

    int64_t getTileTokens() const { return getTile()[0]; }
    int64_t getTileOutputs() const { return getTile()[1]; }
    /// Kept rows that a K step multiplies.
    int64_t getTileRows() const { return getTile()[2]; }
    /// Windows of a K step, or those that one has parts of.
    int64_t getTileWindows(EncodingAttr encoding) const;
    /// Returns true if each K step is a whole number of windows.
    bool hasWholeWindows(EncodingAttr encoding) const;
    /// Rows of the tiles of one K step: its kept rows, rounded up to what the
    /// product multiplies at once.
    int64_t getStepRows() const;
    /// Panels that one CTA tile can touch: one when the tile lies inside a
    /// panel, and one more than fit when panels and tiles are not aligned.
    int64_t getTilePanels(EncodingAttr encoding) const;
    /// Returns true if each tile is whole panels or lies inside one.
    bool isPanelAligned(EncodingAttr encoding) const;

    /// The dimension of the grid, tokens by outputs, along which the CTAs of a
    /// cluster have neighbouring tiles: they share activations, or, where these
    /// are gathered, values.
    unsigned getClusterDim() const { return gathersX() ? 0 : 1; }

    /// What the product answers of this schedule.
    OperandTiles getOperandTiles() const;
    SumOwners getSumOwners(EncodingAttr encoding) const;
    RingUse getRingUse() const;

    int64_t getStages() const;
    /// Warps that only copy.
    int64_t getProducers() const;
    /// Threads that multiply, the first of the CTA.
    int64_t getNumThreads() const;
    /// All threads of the CTA, producers last.
    int64_t getBlockThreads() const;

    /// These ask the transfers.
    bool gathersX() const { return getTransfers().getX().getUse().selectsRows; }
    bool hasResidentIndex() const {
      TransferUse use = getTransfers().getIndex().getUse();
      return use.isResident && !use.tabulatesRows;
    }
    /// Returns true if K steps count kept rows, found in a table, not windows.
    bool hasRowTable() const {
      return getTransfers().getIndex().getUse().tabulatesRows;
    }
    /// Returns true if the product reads all operands from global memory.
    bool isDirect() const { return getTransfers().areDirect(); }
    bool hasBulkValues() const {
      return getTransfers().getValues().getUse().isBulk;
    }
    /// Returns true if it copies the bits of the weight, too: then no tile is of
    /// positions.
    bool hasBulkBits() const {
      return getTransfers().getIndex().getUse().isBulk;
    }
    /// Returns true if the tensor memory accelerator copies the activations: it
    /// copies the other operands then, too.
    bool isBulk() const { return getTransfers().getX().getUse().isBulk; }

    int64_t getSplitK() const;
    /// Returns true if the CTAs of a tile are a cluster.
    bool splitsInCluster() const { return getGrid().exchangesInCluster(); }
    bool isPersistent() const;
    bool isStreamK() const;
    /// Returns true if CTAs exchange parts of tiles.
    bool sharesTiles() const { return getSplitK() > 1 || isStreamK(); }

    /// CTAs of a cluster.
    int64_t getClusterCTAs() const { return getGrid().getClusterCTAs(); }

    /// The same schedule with another grid.
    ScheduleAttr withGrid(GridAttrInterface grid) const;
  }];
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULE_TD
