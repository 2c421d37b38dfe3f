# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of scripts/mutate_kernels.py that the emulator is known not to find, and
why."""

EXPANSIONS = (
    "expand-split2-token expand-split2-feature expand-shares2-token "
    "expand-shares2-feature expand-persistent-token "
    "expand-persistent-feature expand-stream-token expand-stream-feature "
    "expand-longwindows segments-split2 segments-shares2 segments-persistent "
    "segments-stream segments-all segments-ahead ahead-rows-token ahead-rows-feature "
    "ahead-outputs-token ahead-outputs-feature ahead-persistent-token "
    "ahead-persistent-feature"
)

# Sparse tensor cores, with clusters and without.
PAIRS = (
    "sp-pairs-token sp-pairs-feature sp-pairs-bytes sp-pairs-persistent-token "
    "sp-pairs-persistent-feature sp-fours-token sp-fours-feature "
    "sp-ahead-pairs-token sp-ahead-pairs-feature"
)
SPARSE = (
    "sp-split2-token sp-split2-feature sp-split2-bytes sp-outputs-token "
    "sp-outputs-feature sp-persistent-token sp-persistent-feature sp-stream-token "
    "sp-stream-feature sp-ahead-token sp-ahead-feature sp-ahead-stream-token "
    "sp-ahead-stream-feature sp-ahead-stream-bytes f16-2of4-8"
)

# V:N:M: gathers in front of sparse tensor cores.
LEVELS_FEATURE = (
    "levels-64-2-5-feature levels-64-2-8-feature levels-128-2-10-feature "
    "levels-256-2-20-feature levels-pairs-feature"
)
LEVELS = f"{LEVELS_FEATURE} {LEVELS_FEATURE.replace('feature', 'token')}"

# Warps that copy, all of whose copies are cp.async.
COPIED = (
    "wgmma-stream-batch3 wgmma-tokens-by-panel-f16-relu-150 "
    "wgmma-tokens-by-panel-bf16-gelu-150 "
    "wgmma-tokens-by-panel-f16-residual-150 block-wgmma-two-token-result "
    "block-wgmma-two-feature-result block-wgmma-persistent-token-result "
    "block-wgmma-persistent-feature-result "
    "block-mma-token-gather-resident-3of8-8 "
    "block-mma-token-copy-resident-3of8-8 parts-wgmma-token-3of4 "
    "wgmma-tma-stages3-split2-none mma-producers-token-gather-resident "
    "mma-producers-token-copy-resident mma-producers-feature-gather-resident "
    "mma-producers-feature-copy-resident mma-producers-stages2-split2-none "
    "mma-producers-stages4-split1-gelu mma-producers-stages3-split4-residual "
    "mma-persistent-split1 mma-persistent-split2 mma-stream-none mma-stream-gelu "
    "mma-stream-residual mma-tma-f16-gather mma-tma-bf16-gather-token-result "
    "wgmma-producers-stages2-split1-gelu wgmma-producers-stages4-split2-none "
    "wgmma-producers-stages3-split1-residual wgmma-tma-stages2-split1-relu "
    "wgmma-tma-stages4-split1-residual wgmma-tma-batch3 wgmma-stream-residual "
    "wgmma-tma-token-major-result wgmma-tokens-by-panel-bf16-cast-odd "
    "wgmma-tokens-by-panel-f16-gelu-301 block-mma-feature-gather-resident-3of8-8 "
    "block-mma-feature-copy-resident-3of8-8 parts-mma-roles-28of32 "
    "parts-wgmma-panels-11of32 parts-wgmma-persistent-20of32 "
    "parts-wgmma-stream-11of16 warps-sp-ring-token warps-sp-ring-feature "
    f"warps-sp-stream-token warps-sp-stream-feature {LEVELS} "
    "ragged-mma-producers ragged-wgmma ragged-wgmma-persistent "
    "shuffled-mma-producers shuffled-wgmma shuffled-wgmma-persistent "
    "convolution-mma-producers convolution-wgmma convolution-wgmma-persistent"
)

# Kernels, operations, and why mutants of these go unnoticed.
KNOWN_SURVIVORS = [
    (
        "mma-stream-none",
        "nvvm.barrier nvvm.memory.barrier",
        "its tiles are fewer than SMs: none is shared, and no CTA has a second one",
    ),
    (
        COPIED,
        "nvvm.bar.warp.sync",
        "cp.async copies all rows: no thread stores what its warp arrives for",
    ),
    (
        "wgmma-tokens-by-panel-f16-relu-150 wgmma-tokens-by-panel-f16-residual-150 "
        "ragged-mma-producers ragged-wgmma-persistent shuffled-mma-producers "
        "shuffled-wgmma-persistent convolution-mma-producers "
        "convolution-wgmma-persistent",
        "nvvm.barrier nvvm.mbarrier.arrive",
        "4 or 6 tiles on 132 SMs: no CTA has a second one",
    ),
    (
        "block-f16-8x128-token block-bf16-16x128-token block-f16-64x64-token "
        "block-f16-2x64-feature block-f16-8x128-feature block-f16-64x64-feature",
        "nvvm.mbarrier.init nvvm.mbarrier.arrive nvvm.mbarrier.try_wait "
        "nvvm.wgmma.wait.group.sync.aligned nvvm.bar.warp.sync",
        "its ring has a slot for each step, and cp.async copies all rows",
    ),
    (
        "mma-tma-f16-gather mma-tma-bf16-gather-token-result mma-tma-bf16-copy "
        "parts-mma-roles-28of32",
        "nvvm.fence.mbarrier.init",
        "the fence before each copy lets the async proxy see the mbarriers too",
    ),
    (
        "expand-longwindows segments-shares2 segments-persistent ahead-rows-token "
        "ahead-rows-feature ahead-outputs-token ahead-outputs-feature "
        "segments-ahead",
        "nvvm.wgmma.commit.group.sync.aligned nvvm.wgmma.wait.group.sync.aligned",
        "its parts have registers of their own, and a later wait comes before "
        "these are written again",
    ),
    (
        f"{EXPANSIONS} {SPARSE} {LEVELS} warps-sp-bulk-token warps-sp-bulk-feature",
        "nvvm.fence.mbarrier.init",
        "the fence before each copy lets the async proxy see the mbarriers too",
    ),
    (
        f"{SPARSE} {PAIRS}",
        "nvvm.fence.proxy",
        "the copy behind it fills values, which wgmma alone reads; another fence "
        "comes before the copy of bits, which threads read",
    ),
    (
        LEVELS,
        "nvvm.fence.proxy",
        "warpgroups have a fence of their own between their reads of bits and their "
        "products, before they free the slot",
    ),
    (
        "levels-64-2-8-token",
        "nvvm.barrier",
        "each thread reads the positions that it stored itself: a step has as many "
        "rows as there are threads that copy",
    ),
    (
        "expand-persistent-token expand-persistent-feature segments-persistent "
        "segments-stream ahead-persistent-token ahead-persistent-feature",
        "nvvm.bar.warp.sync",
        "all lanes have read the slot before the wait for their product",
    ),
    (
        "mma-persistent-split2",
        "nvvm.barrier",
        "the barriers around the counter of the CTAs that share a tile come "
        "between the last read of an index and the copy of the next",
    ),
    (
        "wgmma-tma-stages4-split1-residual",
        "nvvm.mbarrier.arrive",
        "the last step of a CTA's first tile lies in a slot that the three steps "
        "of its second and last one do not come to",
    ),
]


def explain_survivor(kernel: str, operation: str) -> str:
    operation = operation.split(" (")[0]  # Without what was done to it.
    for names, what, reason in KNOWN_SURVIVORS:
        if kernel in names.split() and operation in what.split():
            return reason
    return "unknown"
