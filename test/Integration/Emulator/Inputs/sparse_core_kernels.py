# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of sparse tensor cores: 2:4 by `wgmma_sp` and `mma_sp`, and V:N:M, whose
panels choose the columns that 2:4 is in."""

from families import BULK, LAYOUTS, Case


def sparse():
    """2:4 on sparse tensor cores: rows that are not whole steps, several products of a
    warpgroup, CTAs that share tiles, clusters that share activations, and metadata
    that is made ahead."""
    few = {"tokens": 50, "k": 600, "outputs": 200}
    many = {"tokens": 650, "k": 300, "outputs": 200}
    for name, tile, warps, stages, grid, case in (
        ("split2", (64, 128, 32), 8, 3, "flat<split_k = 2>", few),
        (
            "cluster3",
            (24, 128, 32),
            8,
            3,
            "flat<split_k = 3, in_cluster = true>",
            few,
        ),
        ("cluster2", (64, 64, 32), 4, 2, "flat<split_k = 2, in_cluster = true>", few),
        ("outputs", (24, 128, 64), 4, 2, "flat", few),
        ("persistent", (16, 64, 32), 4, 3, "persistent", many),
        ("stream", (16, 64, 32), 4, 3, "persistent<stream_k = true>", many),
        ("pairs", (32, 64, 32), 4, 2, "flat<cluster = 2>", few),
        ("pairs-persistent", (16, 64, 32), 4, 3, "persistent<cluster = 2>", many),
        ("fours", (64, 64, 64), 4, 2, "persistent<cluster = 4>", few),
        ("ahead", (32, 128, 64), 8, 3, "flat<split_k = 2>", {**few, "k": 1100}),
        ("ahead-pairs", (16, 64, 32), 4, 2, "persistent<cluster = 2>", many),
        ("ahead-stream", (16, 64, 32), 4, 3, "persistent<stream_k = true>", many),
    ):
        ahead = ", ahead = true" if "ahead" in name else ""
        kept = (
            f"#nm_tile.schedule<tile = {list(tile)}, "
            f"product = wgmma_sp<warps = {warps}{ahead}>, {BULK}, "
            f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
        )
        for layout, dims in LAYOUTS.items():
            element = "bf16" if layout == "feature" else "f16"
            yield (
                f"sp-{name}-{layout}",
                Case(element, 2, 4, 1, schedule=kept, **case, **dims),
            )
        if name in ("split2", "cluster3", "pairs", "ahead-stream"):
            # A line has twice as many elements of 8 bits, and the ring goes round
            # as often.
            wide = kept.replace(f", {tile[2]}]", f", {2 * tile[2]}]")
            case = {**case, "k": 2 * case["k"]}
            eight = Case("f8E4M3FN", 2, 4, 1, epilogue="cast", schedule=wide, **case)
            yield f"sp-{name}-bytes", eight


def sparse_warps():
    """2:4 on sparse tensor cores of warps: rows that are not whole steps, all numbers
    of fragments, sums of several CTAs, warps that only copy, and bulk copies."""
    few = {"tokens": 50, "k": 600, "outputs": 200}
    many = {"tokens": 650, "k": 300, "outputs": 200}
    odd = {"tokens": 37, "k": 330, "outputs": 71}
    threads = "transfers = {x = copy, values = copy, index = staged}"
    for name, tile, warps, pipeline, grid, case in (
        (
            "split2",
            (64, 128, 32),
            (2, 2),
            "async_groups<stages = 3>",
            "flat<split_k = 2>",
            few,
        ),
        ("large", (128, 128, 64), (2, 2), "async_groups<stages = 2>", "flat", few),
        ("tokens", (56, 32, 32), (1, 1), "async_groups<stages = 4>", "flat", odd),
        (
            "eight",
            (8, 64, 64),
            (1, 2),
            "async_groups<stages = 2>",
            "flat<split_k = 3>",
            {**odd, "k": 1010},
        ),
        ("warps", (32, 128, 32), (4, 4), "async_groups<stages = 3>", "flat", odd),
        (
            "ring",
            (64, 64, 32),
            (2, 2),
            "ring<stages = 3, producers = 4>",
            "persistent",
            many,
        ),
        (
            "stream",
            (16, 64, 32),
            (1, 2),
            "ring<stages = 3, producers = 2>",
            "persistent<stream_k = true>",
            many,
        ),
        (
            "bulk",
            (40, 64, 64),
            (1, 2),
            "ring<stages = 2, producers = 4>",
            "flat<split_k = 2>",
            few,
        ),
        (
            "bulk-pairs",
            (32, 64, 32),
            (2, 2),
            "ring<stages = 3, producers = 4>",
            "persistent<cluster = 2>",
            many,
        ),
    ):
        copies = BULK if "bulk" in name else threads
        kept = (
            f"#nm_tile.schedule<tile = {list(tile)}, "
            f"product = mma_sp<warps = {list(warps)}>, "
            f"{copies}, pipeline = {pipeline}, grid = {grid}>"
        )
        for layout, dims in LAYOUTS.items():
            element = "bf16" if layout == "feature" else "f16"
            epilogue = "gelu" if name in ("tokens", "split2") else "none"
            yield (
                f"warps-sp-{name}-{layout}",
                Case(
                    element, 2, 4, 1, epilogue=epilogue, schedule=kept, **case, **dims
                ),
            )
    kept = (
        "#nm_tile.schedule<tile = [32, 64, 32], product = mma_sp<warps = [2, 2]>, "
        f"{threads}, pipeline = async_groups<stages = 3>>"
    )
    # Results that lie the other way than activations, and panels.
    for name, panel, dims in (
        ("xf-yt", 4, {"x_feature_major": True}),
        ("xt-yf", 1, {"y_feature_major": True}),
    ):
        for epilogue in ("residual", "cast"):
            yield (
                f"warps-sp-{name}-{epilogue}",
                Case(
                    "f16", 2, 4, panel, epilogue=epilogue, schedule=kept, **odd, **dims
                ),
            )
    batch = {"batch": 3, "schedule": kept, **odd}
    yield "warps-sp-batch", Case("bf16", 2, 4, 1, **batch)
    yield "warps-sp-shared", Case("f16", 2, 4, 1, shared_weight=True, dim=1, **batch)


def levels(tile, warps, stages=3, grid="flat", ahead=False):
    """A schedule of V:N:M: the rows that panels keep are gathered."""
    flag = ", ahead = true" if ahead else ""
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, product = wgmma_sp<warps = "
        f"{warps}{flag}>, transfers = {{x = gather, values = bulk, index = resident}}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


def columns_per_panel():
    """V:N:M: panels inside tiles and tiles inside panels, the patterns that keep
    most, and pairs of CTAs."""
    few = {"tokens": 70, "k": 600, "outputs": 200}
    # More tiles than SMs.
    many = {"tokens": 1270, "k": 400, "outputs": 392}
    for name, m, panel, kept, case in (
        ("64-2-5", 5, 64, levels((64, 128, 32), 8), few),
        (
            "64-2-8",
            8,
            64,
            levels((128, 64, 64), 4, 4, ahead=True),
            {**few, "k": 1500},
        ),
        ("128-2-10", 10, 128, levels((64, 64, 32), 4, 2, "persistent"), many),
        (
            "256-2-20",
            20,
            256,
            levels((64, 64, 32), 4, 2, "flat<split_k = 2>"),
            {**few, "k": 1600},
        ),
        (
            "pairs",
            16,
            128,
            levels((64, 64, 32), 4, 3, "persistent<cluster = 2>", ahead=True),
            {**many, "k": 1000},
        ),
        (
            "256-2-8-wide",
            8,
            256,
            levels((192, 256, 32), 8, 4, "persistent", ahead=True),
            {**few, "tokens": 200},
        ),
    ):
        for layout, dims in LAYOUTS.items():
            yield (
                f"levels-{name}-{layout}",
                Case("f16", 4, m, panel, inner="2:4", schedule=kept, **case, **dims),
            )


def sparse_core_kernels():
    yield from sparse()
    yield from sparse_warps()
    yield from columns_per_panel()
