# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of weights that are stored as bitmaps, and of few tokens: `dot`, of n:m
and of free elements, `panel_dot`, `mma_expand` and `wgmma_expand`, and those of
sparse tensor cores."""

from families import BULK, FEATURE, LAYOUTS, Case
from sparse_core_kernels import sparse_core_kernels

DIRECT = "transfers = {x = direct, values = direct, index = direct}"


def direct(product, tile, split_k=1):
    """A schedule of a product that reads global memory."""
    grid = f"flat<split_k = {split_k}>" if split_k > 1 else "flat"
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, product = {product}, {DIRECT}, "
        f"pipeline = sequential, grid = {grid}>"
    )


def expand(tile, warps, stages=3, shares=1, grid="flat", **flags):
    product = f"wgmma_expand<warps = {warps}"
    product += f", shares = {shares}" if shares > 1 else ""
    product += "".join(f", {name} = true" for name in flags) + ">"
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, product = {product}, {BULK}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


def dots():
    """Steps that are whole and that are not, with the sum of several CTAs, windows
    that fit into a word of bits and that do not."""
    sizes = {"tokens": 3, "k": 1100, "outputs": 72}
    for layout, dims in LAYOUTS.items():
        for element, n, m, block_k, rows in (
            ("f16", 8, 16, 1, 64),
            ("bf16", 5, 9, 1, 320),
            ("f32", 16, 32, 1, 64),
            ("f16", 3, 40, 1, 96),
            ("bf16", 2, 8, 8, 128),
        ):
            kept = direct("dot<warps = 4>", (4, 32, rows), split_k=2)
            yield (
                f"dot-{layout}-{element}-{n}of{m}-{block_k}",
                Case(element, n, m, 1, block_k=block_k, schedule=kept, **sizes, **dims),
            )
    whole = {"tokens": 1, "k": 1024, "outputs": 64}
    yield (
        "dot-whole",
        Case("f16", 8, 16, 1, schedule=direct("dot<warps = 8>", (1, 32, 256)), **whole),
    )
    for split_k in (1, 4):
        yield (
            f"dot-free-split{split_k}",
            Case(
                "f16",
                free=True,
                panel=1,
                epilogue="gelu",
                schedule=direct("dot<warps = 4>", (2, 32, 512), split_k),
                **{**sizes, "tokens": 2},
            ),
        )


def panel_dots():
    """Groups of lanes that divide a warp, and that are one."""
    sizes = {"tokens": 3, "k": 1100, "outputs": 72}
    for layout, warps, shares, outputs, split_k in (
        ("token", 4, 32, 32, 1),
        ("feature", 4, 4, 256, 2),
        ("token", 2, 4, 128, 4),
    ):
        product = f"panel_dot<warps = {warps}, shares = {shares}>"
        kept = direct(product, (4, outputs, 64), split_k)
        yield (
            f"panel-dot-{layout}-{shares}-split{split_k}",
            Case(
                "f16",
                8,
                32,
                32,
                epilogue="gelu",
                schedule=kept,
                **sizes,
                **LAYOUTS[layout],
            ),
        )


def expansions():
    """Rings that the tensor memory accelerator fills alone."""
    few = {"tokens": 50, "k": 600, "outputs": 200}
    # More tiles than SMs.
    many = {"tokens": 650, "k": 300, "outputs": 200}
    for name, kept, case in (
        ("expand-split2", expand((64, 128, 32), 8, grid="flat<split_k = 2>"), few),
        ("expand-shares2", expand((24, 128, 64), 16, shares=2), few),
        ("ahead-rows", expand((32, 128, 64), 8, ahead=True), few),
        ("ahead-outputs", expand((24, 256, 32), 8, 2, ahead=True), few),
        (
            "ahead-persistent",
            expand((8, 128, 32), 8, grid="persistent", ahead=True),
            many,
        ),
        ("expand-persistent", expand((16, 64, 32), 4, grid="persistent"), many),
        (
            "expand-stream",
            expand((16, 64, 32), 4, grid="persistent<stream_k = true>"),
            many,
        ),
    ):
        for layout, dims in LAYOUTS.items():
            yield (
                f"{name}-{layout}",
                Case("f16", 8, 16, 1, schedule=kept, **case, **dims),
            )
    yield (
        "expand-longwindows",
        Case("bf16", 8, 48, 1, schedule=expand((32, 64, 32), 4, 2), **few, **FEATURE),
    )


def segments():
    """Windows that lanes of warpgroups expand, from activations in their order."""
    few = {"tokens": 50, "k": 640, "outputs": 200}
    many = {"tokens": 650, "k": 384, "outputs": 200}
    persistent = {"grid": "persistent", "segments": True}
    streaming = {"grid": "persistent<stream_k = true>", "segments": True}
    split = {"grid": "flat<split_k = 2>", "segments": True}
    for name, element, n, m, kept, case in (
        ("split2", "f16", 8, 16, expand((64, 128, 32), 8, **split), few),
        (
            "shares2",
            "bf16",
            16,
            32,
            expand((24, 128, 128), 16, 2, 2, segments=True),
            few,
        ),
        ("persistent", "f16", 4, 16, expand((8, 128, 32), 4, 2, **persistent), many),
        ("stream", "f16", 2, 4, expand((16, 64, 32), 4, **streaming), many),
        ("all", "bf16", 16, 16, expand((8, 64, 64), 4, segments=True), few),
        (
            "ahead",
            "f16",
            8,
            16,
            expand((40, 128, 64), 8, segments=True, ahead=True),
            few,
        ),
    ):
        yield (
            f"segments-{name}",
            Case(element, n, m, 1, schedule=kept, **case, **FEATURE),
        )


def windows():
    """Windows that lanes expand: segments of a quarter of a tile to a whole one, an
    odd number of rows and of values, and all tiles of tokens."""
    sizes = {"k": 600, "outputs": 72}
    for element, n, m, block_k, tile, tokens, split_k in (
        ("f16", 8, 16, 1, (16, 64, 64), 13, 2),
        ("bf16", 4, 16, 1, (8, 64, 64), 5, 1),
        ("f16", 16, 32, 1, (8, 64, 128), 8, 1),
        ("bf16", 1, 1, 1, (8, 64, 64), 6, 1),
        ("f16", 1, 3, 1, (8, 64, 256), 7, 2),
        ("bf16", 3, 6, 1, (8, 64, 384), 8, 1),
        ("f16", 2, 4, 4, (32, 64, 64), 40, 1),
    ):
        product = "mma_expand<warps = 4, shares = 2>"
        for layout, dims in LAYOUTS.items():
            kept = direct(product, tile, split_k)
            yield (
                f"windows-{layout}-{element}-{n}of{m}-{block_k}",
                Case(
                    element,
                    n,
                    m,
                    1,
                    block_k=block_k,
                    tokens=tokens,
                    epilogue="gelu" if split_k > 1 else "none",
                    schedule=kept,
                    **sizes,
                    **dims,
                ),
            )
    yield (
        "windows-64tokens",
        Case(
            "f16",
            8,
            16,
            1,
            tokens=64,
            schedule=direct("mma_expand<warps = 2>", (64, 64, 32)),
            k=512,
            outputs=64,
        ),
    )


def bytes_expanded():
    """Elements of 8 bits: lanes that expand windows of their own, and warpgroups,
    whose values lie in one piece, or in which, only the bits say."""
    few = {"tokens": 21, "k": 700, "outputs": 200}
    many = {"tokens": 650, "k": 300, "outputs": 200}
    lanes = direct("mma_expand<warps = 4, shares = 2>", (8, 64, 640), 2)
    for name, element, n, m, kept, case in (
        (
            "lanes",
            "f8E4M3FN",
            8,
            16,
            direct("mma_expand<warps = 2>", (16, 64, 64)),
            few,
        ),
        ("lanes-odd", "f8E5M2", 5, 9, lanes, few),
        ("shares4", "f8E4M3FN", 16, 32, expand((24, 64, 256), 16, shares=4), few),
        ("ahead", "f8E5M2", 8, 16, expand((16, 128, 64), 4, ahead=True), few),
        ("long", "f8E4M3FN", 5, 9, expand((32, 64, 160), 4, 2), few),
        (
            "stream",
            "f8E4M3FN",
            4,
            16,
            expand((32, 64, 32), 4, grid="persistent<stream_k = true>"),
            many,
        ),
    ):
        yield (
            f"bytes-{name}",
            Case(element, n, m, 1, epilogue="cast", schedule=kept, **case),
        )


def bitmap_kernels():
    yield from dots()
    yield from bytes_expanded()
    yield from panel_dots()
    yield from windows()
    yield from expansions()
    yield from sparse_core_kernels()
    yield from segments()
