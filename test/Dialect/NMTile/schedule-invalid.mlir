// RUN: nm-opt %s -split-input-file -verify-diagnostics

// What is illegal of a schedule, whatever product it is on.

// expected-error @below {{tile must be three positive extents, [tokens, outputs, rows]}}
#s = #nm_tile.schedule<tile = [128, 128], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{tile must be three positive extents}}
#s = #nm_tile.schedule<tile = [128, 0, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{tile extents must be at most 4096, got [8192, 128, 16]}}
#s = #nm_tile.schedule<tile = [8192, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{producers must be in [0, 24] beside the 8 warps of the product, got 25}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 25>>

// -----

// expected-error @below {{persistent CTAs need producers, which fetch the next tile; legal is pipeline = ring<...>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 2>, grid = persistent>

// -----

// Its text.

// expected-error @below {{a schedule needs pipeline; its fields are tile, product, transfers, pipeline and grid}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>>

// -----

// expected-error @below {{'stages' is not a field of a schedule; expected tile, product, transfers, pipeline and grid}}
#s = #nm_tile.schedule<tile = [128, 128, 16], stages = 3>

// -----

// expected-error @below {{expected tile, product, transfers, pipeline and grid}}
#s = #nm_tile.schedule<tile = [128, 128, 16],>

// -----

// expected-error @below {{tile is given twice}}
#s = #nm_tile.schedule<tile = [128, 128, 16], tile = [128, 128, 16]>

// -----

// expected-error @below {{'mmma' is no part of a schedule of this dialect}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mmma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{product must be a product, such as mma<warps = [2, 4]>, got #nm_tile.flat}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = flat, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{product must be a product, such as mma<warps = [2, 4]>, got @mma}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = @mma, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{pipeline must be sequential, async_groups<...> or ring<...>, got #nm_tile.mma<warps = [2, 4]>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = mma<warps = [2, 4]>>

// -----

// expected-error @below {{grid must be flat or persistent, got #nm_tile.mma<warps = [2, 4]>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>, grid = mma<warps = [2, 4]>>

// -----

// Transfers.

// expected-error @below {{x must be copy, gather, bulk or direct, got 'packed'}}
#s = #nm_tile.schedule<tile = [128, 128, 16], transfers = {x = packed}>

// -----

// expected-error @below {{values must be copy, bulk or direct}}
#s = #nm_tile.schedule<tile = [128, 128, 16], transfers = {values = 1}>

// -----

// expected-error @below {{index must be staged, resident, rows, bulk or direct, got 'none'}}
#s = #nm_tile.schedule<tile = [128, 128, 16], transfers = {index = none}>

// -----

// expected-error @below {{values must be copy, bulk or direct, got 'gather'}}
#s = #nm_tile.schedule<tile = [64, 64, 64], product = mma<warps = [2, 2]>, transfers = {values = gather}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{x must be copy, gather, bulk or direct, got #nm_tile.flat}}
#s = #nm_tile.schedule<tile = [64, 64, 64], product = mma<warps = [2, 2]>, transfers = {x = #nm_tile.flat}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{x must be copy, gather, bulk or direct, got #nm_tile.staged}}
#s = #nm_tile.schedule<tile = [64, 64, 64], product = mma<warps = [2, 2]>, transfers = {x = #nm_tile.staged}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{dot reads global memory: legal is transfers = {x = direct, values = direct, index = direct}}}
#s = #nm_tile.schedule<tile = [8, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = copy, index = direct}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{'tma' is not a field of transfers; expected x, values and index}}
#s = #nm_tile.schedule<tile = [128, 128, 16], transfers = {tma = true}>

// -----

// expected-error @below {{values = bulk copies in the layout of tensor cores; legal for simt is values = copy}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = simt<warps = [2, 4]>, transfers = {values = bulk}, pipeline = ring<stages = 2, producers = 4>>

// -----

// expected-error @below {{values = bulk needs producers to start the copies; legal is pipeline = ring<...>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, transfers = {values = bulk}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{values = bulk needs producers to start the copies; legal is pipeline = ring<...>}}
#s = #nm_tile.schedule<tile = [128, 256, 64], product = wgmma<warps = [1, 8]>, transfers = {values = bulk}, pipeline = async_groups<stages = 3>>

// -----

// Pipelines.

// expected-error @below {{stages must be in [2, 8], got 1}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 1>>

// -----

// expected-error @below {{stages must be in [2, 8], got 9}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 9, producers = 4>>

// -----

// expected-error @below {{producers must be in [1, 31], got 0; without warps that only copy, the pipeline is async_groups}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 0>>

// -----

// expected-error @below {{async_groups needs stages; its fields are stages}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups>

// -----

// expected-error @below {{ring needs producers; its fields are stages and producers}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2>>

// -----

// expected-error @below {{producers must be a number of warps, got 'true'}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = true>>

// -----

// expected-error @below {{producers is given twice}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4, producers = 4>>

// -----

// Grids.

// expected-error @below {{split_k must be in [1, 64], got 65}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 2>, grid = flat<split_k = 65>>

// -----

// expected-error @below {{'stream_k' is not a field of flat; expected split_k}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4>, grid = flat<stream_k = true>>

// -----

// expected-error @below {{in_cluster = true needs split_k in [2, 8], got 1}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 2>, grid = flat<in_cluster = true>>

// -----

// expected-error @below {{in_cluster = true needs split_k in [2, 8], got 9}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 2>, grid = flat<split_k = 9, in_cluster = true>>

// -----

// expected-error @below {{cluster = 2 needs split_k = 1, got split_k = 4}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat<split_k = 4, in_cluster = true, cluster = 2>>

// -----

// expected-error @below {{'in_cluster' is not a field of persistent}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4>, grid = persistent<split_k = 2, in_cluster = true>>

// -----

// expected-error @below {{stream_k = true needs split_k = 1, got split_k = 2}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4>, grid = persistent<split_k = 2, stream_k = true>>

// -----

// expected-error @below {{stream_k must be true or false, got 'yes'}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = yes>>

// -----

// expected-error @below {{stream_k must be true or false}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = ring<stages = 2, producers = 4>, grid = persistent<stream_k = 1>>

// -----

// Products.

// expected-error @below {{mma needs <warps = [tokens, outputs]>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{simt needs <warps = [tokens, outputs]>}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = simt<lanes = 4>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{warps must be two positive counts, [tokens, outputs]}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4, 1]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{warps must be two positive counts}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, -4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a CTA of 8 x 8 warps is larger than the 32 allowed}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [8, 8]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a CTA of 1152921504606846976 x 16 warps is larger than the 32 allowed}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [1152921504606846976, 16]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 16 x 128 over 2 x 4 mma warps must be a multiple of 32 x 32}}
#s = #nm_tile.schedule<tile = [16, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 16 x 24 over 2 x 4 simt warps must be a multiple of 16 x 16}}
#s = #nm_tile.schedule<tile = [16, 24, 16], product = simt<warps = [2, 4]>, pipeline = async_groups<stages = 3>>

// -----

// Warpgroups.

// expected-error @below {{wgmma warps along outputs must be a multiple of the 4 of a warpgroup, got 6}}
#s = #nm_tile.schedule<tile = [128, 256, 64], product = wgmma<warps = [1, 6]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 192 outputs over 2 warpgroups must be a multiple of 64 outputs for each}}
#s = #nm_tile.schedule<tile = [128, 192, 64], product = wgmma<warps = [1, 8]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 96 tokens over 1 warpgroups must be 64, 128, 192 or 256 tokens for each}}
#s = #nm_tile.schedule<tile = [96, 256, 64], product = wgmma<warps = [1, 8]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 320 tokens over 1 warpgroups must be 64, 128, 192 or 256 tokens for each}}
#s = #nm_tile.schedule<tile = [320, 128, 64], product = wgmma<warps = [1, 8]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{a tile of 256 x 256 over 1 x 8 wgmma warps has 256 accumulators in each thread, more than the 192 that registers hold}}
#s = #nm_tile.schedule<tile = [256, 256, 64], product = wgmma<warps = [1, 8]>, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{wgmma needs x = gather: products of warpgroups cannot select rows of whole windows}}
#s = #nm_tile.schedule<tile = [128, 256, 64], product = wgmma<warps = [1, 8]>, transfers = {x = copy}, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{producers beside wgmma warps must be a multiple of the 4 of a warpgroup, got 6}}
#s = #nm_tile.schedule<tile = [128, 256, 64], product = wgmma<warps = [1, 8]>, pipeline = ring<stages = 3, producers = 6>>

// -----

// Tables of rows.

// expected-error @below {{index = rows is a table for gathers: legal with it is x = gather, got x = copy}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = copy, index = rows}, pipeline = async_groups<stages = 3>>

// -----

// Products that read global memory.

// expected-error @below {{pipeline = sequential is for products that read global memory: legal with it is transfers = {x = direct, values = direct, index = direct}, and it alone is legal with them}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = sequential>

// -----

// expected-error @below {{pipeline = sequential is for products that read global memory}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = simt<warps = [2, 4]>, transfers = {x = direct, values = direct, index = direct}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{simt reads its operands from shared memory; no transfer may be direct}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = simt<warps = [2, 4]>, transfers = {x = direct}, pipeline = async_groups<stages = 2>>

// -----

// expected-error @below {{mma reads its operands from shared memory; no transfer may be direct}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

// -----

// expected-error @below {{wgmma reads its operands from shared memory; no transfer may be direct}}
#s = #nm_tile.schedule<tile = [128, 256, 64], product = wgmma<warps = [1, 8]>, transfers = {index = direct}, pipeline = async_groups<stages = 2>>

// -----

// Weights that are expanded on the way to tensor cores.

// expected-error @below {{x = bulk needs index = bulk, and both need values = bulk and pipeline = ring<...>}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = staged}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{x = bulk needs index = bulk, and both need values = bulk and pipeline = ring<...>}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = async_groups<stages = 3>>

// -----

// expected-error @below {{wgmma_expand has its weight from the tensor memory accelerator: legal is transfers = {x = bulk, values = bulk, index = bulk}, or x = copy}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8>, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{producers beside wgmma_expand warps must be a multiple of the 4 of a warpgroup, got 2}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 2>>

// -----

// expected-error @below {{wgmma_expand needs a multiple of 4 warps, at most 28, got 6}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_expand<warps = 6>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of 64 outputs over 2 warpgroups must be a multiple of 64 outputs for each}}
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of wgmma_expand must be a multiple of 8, at most 256, tokens, got 12}}
#s = #nm_tile.schedule<tile = [12, 128, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of 256 x 256 over 8 wgmma_expand warps has 256 accumulators in each thread, more than the 192 that registers hold}}
#s = #nm_tile.schedule<tile = [256, 256, 32], product = wgmma_expand<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{mma reads rows that an index names: x = bulk is legal with product = wgmma_expand}}
#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{wgmma_expand needs shares that divide its 4 warpgroups, got 3}}
#s = #nm_tile.schedule<tile = [64, 128, 64], product = wgmma_expand<warps = 16, shares = 3>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// Sparse tensor cores, and clusters.

// expected-error @below {{wgmma_sp has its weight from the tensor memory accelerator: legal is transfers = {x = bulk, values = bulk, index = bulk}, or x = copy}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{producers beside wgmma_sp warps must be a multiple of the 4 of a warpgroup, got 2}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 2>>

// -----

// expected-error @below {{wgmma_sp needs a multiple of 4 warps, at most 28, got 32}}
#s = #nm_tile.schedule<tile = [64, 512, 32], product = wgmma_sp<warps = 32>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of 192 outputs over 2 warpgroups must be a multiple of 64 outputs for each}}
#s = #nm_tile.schedule<tile = [64, 192, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of wgmma_sp must be a multiple of 8, at most 256, tokens, got 264}}
#s = #nm_tile.schedule<tile = [264, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{a tile of 256 x 256 over 8 wgmma_sp warps has 256 accumulators in each thread, more than the 192 that registers hold}}
#s = #nm_tile.schedule<tile = [256, 256, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>>

// -----

// expected-error @below {{cluster must be 1, 2, 4 or 8, got 3}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat<cluster = 3>>

// -----

// expected-error @below {{cluster must be 1, 2, 4 or 8, got 16}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<cluster = 16>>

// -----

// expected-error @below {{cluster = 2 needs split_k = 1, got split_k = 4}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat<split_k = 4, cluster = 2>>

// -----

// expected-error @below {{stream_k = true needs cluster = 1, got cluster = 2}}
#s = #nm_tile.schedule<tile = [64, 128, 32], product = wgmma_sp<warps = 8>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = persistent<stream_k = true, cluster = 2>>

// -----

// An operation that it means nothing on.

#s = #nm_tile.schedule<tile = [128, 128, 16], product = mma<warps = [2, 4]>, pipeline = async_groups<stages = 3>>
// expected-error @below {{has #nm_tile.schedule, which belongs to an nm_sparse.matmul or to a linalg contraction with an encoded weight}}
func.func @f() attributes {nm_sparse.config = #s} {
  return
}
