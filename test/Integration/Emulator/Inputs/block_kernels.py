# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for the emulator of blocks that span several contraction steps, and of
K steps that begin inside windows."""

import itertools

from families import (
    COPIES,
    FEATURE,
    LAYOUTS,
    RAGGED,
    RAGGED_LONG,
    Case,
    mma,
    schedule,
    simt,
)


def blocks():
    """Blocks of several contraction steps: each format in each layout, with the
    model's schedule, and each product with what it can make of them. The
    contraction ends inside a block or between the blocks of a window."""
    short = {"tokens": None, "k": 420, "outputs": 72}
    for (layout, dims), (element, n, m, block) in itertools.product(
        LAYOUTS.items(),
        (
            ("f32", 2, 4, (2, 32)),
            ("f32", 3, 8, (4, 4)),
            ("f32", 1, 2, (64, 64)),
            ("f16", 8, 16, (2, 64)),
            ("bf16", 5, 8, (4, 4)),
            ("bf16", 5, 8, (4, 8)),
            ("f16", 4, 8, (8, 128)),
            ("bf16", 2, 8, (16, 128)),
            ("f16", 1, 4, (64, 64)),
        ),
    ):
        case = Case(element, n, m, block[1], block_k=block[0], **RAGGED_LONG, **dims)
        yield f"block-{element}-{block[0]}x{block[1]}-{layout}", case
    # Panels that share the fragments of tensor cores.
    shared = (("f16", 2, 4, 1), ("bf16", 3, 8, 2), ("f16", 4, 16, 4))
    for element, n, m, panel in shared:
        for layout, dims in LAYOUTS.items():
            yield (
                f"panels-{element}-{panel}-{layout}",
                Case(element, n, m, panel, **short, **dims),
            )


def block_copies():
    """Blocks with each way to copy their operands."""
    for (layout, dims), (x, index) in itertools.product(LAYOUTS.items(), COPIES):
        how = f"{layout}-{x}-{index}"
        modes_ = {"x": x, "index": index}
        for producers in (0, 1):
            kept = simt((64, 64, 1), stages=2, producers=producers, **modes_)
            yield (
                f"block-simt-{how}-producers{producers}",
                Case("f32", 3, 4, 32, block_k=4, schedule=kept, **RAGGED, **dims),
            )
        for element, n, m, block_k, windows, role in (
            ("f16", 2, 4, 8, 2, {}),
            ("bf16", 3, 8, 8, 2, {"producers": 4}),
            ("f16", 3, 4, 2, 4, {}),
        ):
            kept = mma((64, 64, windows), stages=2, **role, **modes_)
            yield (
                f"block-mma-{how}-{n}of{m}-{block_k}",
                Case(
                    element, n, m, 64, block_k=block_k, schedule=kept, **RAGGED, **dims
                ),
            )


def token_major_blocks():
    """Token-major activations that are gathered 16 bytes at a time: panels narrower
    than a tile, rows of odd length, a result in either layout, tiles whose rows are
    tokens, boxes of the values."""
    aligned = {"tokens": None, "k": 1104, "outputs": 300}
    for name, element, n, m, block, tile, warps, sizes, role in (
        ("lines", "f16", 4, 8, (16, 128), (128, 128, 1), (1, 8), aligned, {}),
        ("panels", "bf16", 8, 16, (8, 64), (64, 256, 1), (1, 8), aligned, {}),
        ("odd", "f16", 8, 16, (8, 128), (64, 128, 2), (1, 8), RAGGED_LONG, {}),
        ("whole", "f16", 1, 2, (64, 64), (64, 64, 1), (1, 4), aligned, {}),
        (
            "two",
            "bf16",
            2,
            4,
            (16, 256),
            (128, 256, 2),
            (2, 4),
            aligned,
            {"producers": 4, "tma": True},
        ),
        (
            "persistent",
            "f16",
            4,
            8,
            (16, 64),
            (64, 64, 1),
            (1, 4),
            {"tokens": 2101, "k": 264, "outputs": 300},
            {"producers": 4, "tma": True, "persistent": True},
        ),
    ):
        results = {"token": {}, "feature": {"y_feature_major": True}}
        for result, dims in results.items():
            kept = schedule("wgmma", tile, warps, 3, **role)
            yield (
                f"block-wgmma-{name}-{result}-result",
                Case(
                    element,
                    n,
                    m,
                    block[1],
                    block_k=block[0],
                    schedule=kept,
                    **sizes,
                    **dims,
                ),
            )


def parts_of_windows():
    """Steps that begin inside windows, of patterns whose n divides no step: each
    product, in each pipeline and grid. The last step is not full, and the
    contraction ends inside a window."""
    sizes = {"tokens": None, "k": 560, "outputs": 200}
    cta = {"producers": 4, "tma": True, "persistent": True}
    for name, element, n, m, block, kind, tile, warps, rows, role, dims in (
        ("simt", "f32", 7, 8, (1, 32), "simt", (64, 64), (1, 2), 16, {}, FEATURE),
        ("simt-token", "f32", 5, 8, (1, 8), "simt", (64, 64), (1, 2), 16, {}, {}),
        (
            "simt-roles",
            "f32",
            11,
            32,
            (1, 32),
            "simt",
            (64, 64),
            (1, 2),
            24,
            {"producers": 1, "split_k": 2},
            FEATURE,
        ),
        ("mma", "bf16", 5, 8, (1, 64), "mma", (64, 64), (2, 2), 32, {}, FEATURE),
        ("mma-token", "f16", 3, 5, (2, 64), "mma", (64, 64), (2, 2), 32, {}, {}),
        (
            "mma-roles",
            "f16",
            28,
            32,
            (1, 64),
            "mma",
            (64, 128),
            (2, 4),
            64,
            {"producers": 4, "tma": True, "split_k": 2},
            FEATURE,
        ),
        (
            "wgmma",
            "f16",
            28,
            32,
            (1, 128),
            "wgmma",
            (64, 128),
            (1, 8),
            64,
            {},
            FEATURE,
        ),
        (
            "wgmma-panels",
            "bf16",
            11,
            32,
            (1, 64),
            "wgmma",
            (64, 128),
            (1, 8),
            64,
            {"producers": 4, "tma": True},
            FEATURE,
        ),
        (
            "wgmma-persistent",
            "f16",
            20,
            32,
            (1, 64),
            "wgmma",
            (64, 64),
            (1, 4),
            64,
            cta,
            FEATURE,
        ),
        (
            "wgmma-token",
            "bf16",
            3,
            4,
            (16, 128),
            "wgmma",
            (64, 128),
            (1, 8),
            64,
            {"producers": 4},
            {},
        ),
    ):
        kept = schedule(kind, tile, warps, rows=rows, **role)
        many = {**sizes, "tokens": 2201} if role is cta else sizes
        yield (
            f"parts-{name}-{n}of{m}",
            Case(
                element,
                n,
                m,
                block[1],
                block_k=block[0],
                schedule=kept,
                **many,
                **dims,
            ),
        )
    kept = schedule(
        "wgmma", (64, 64), (1, 4), rows=64, stream_k=True, producers=4, persistent=True
    )
    yield (
        "parts-wgmma-stream-11of16",
        Case("f16", 11, 16, 64, schedule=kept, **{**sizes, "tokens": 2201}, **FEATURE),
    )


def block_kernels():
    yield from blocks()
    yield from block_copies()
    yield from token_major_blocks()
    yield from parts_of_windows()
