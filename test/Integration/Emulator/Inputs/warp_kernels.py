# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the products of warps: on CUDA cores and by mma.sync."""

import itertools

from families import COPIES, FEATURE, LAYOUTS, RAGGED, RAGGED_LONG, Case, mma, simt


def copies():
    """Each layout, and each way to copy its operands."""
    for (layout, dims), (x, index) in itertools.product(LAYOUTS.items(), COPIES):
        how = f"{layout}-{x}-{index}"
        modes_ = {"x": x, "index": index}
        yield (
            f"simt-{how}",
            Case("f32", 8, 32, 32, schedule=simt(**modes_), **RAGGED, **dims),
        )
        for element in ("f16", "bf16"):
            yield (
                f"mma-{element}-{how}",
                Case(element, 8, 32, 64, schedule=mma(**modes_), **RAGGED, **dims),
            )


def rings():
    """Rings of each depth, and the sum of several CTAs."""
    for stages, split_k in ((2, 1), (4, 1), (3, 2), (2, 4)):
        how = f"stages{stages}-split{split_k}"
        long = {"tokens": 40, "k": 600, "outputs": 100}
        yield (
            f"simt-{how}",
            Case(
                "f32", 16, 32, 32, schedule=simt(stages=stages, split_k=split_k), **long
            ),
        )
        yield (
            f"mma-{how}",
            Case(
                "f16",
                4,
                16,
                32,
                schedule=mma(stages=stages, split_k=split_k),
                **long,
                **FEATURE,
            ),
        )


def producers():
    """Warps that only copy."""
    for (layout, dims), (x, index) in itertools.product(LAYOUTS.items(), COPIES):
        how = f"producers-{layout}-{x}-{index}"
        modes_ = {"x": x, "index": index}
        one, four = simt(**modes_, producers=1), mma(**modes_, producers=4)
        yield f"simt-{how}", Case("f32", 8, 32, 32, schedule=one, **RAGGED, **dims)
        # Rows of an odd length are stored, not copied.
        odd = {**RAGGED, "k": 301} if index == "resident" else RAGGED
        yield f"mma-{how}", Case("f16", 8, 32, 64, schedule=four, **odd, **dims)
    for stages, split_k, epilogue in (
        (2, 2, "none"),
        (4, 1, "gelu"),
        (3, 4, "residual"),
    ):
        yield (
            f"mma-producers-stages{stages}-split{split_k}-{epilogue}",
            Case(
                "bf16",
                4,
                16,
                32,
                epilogue=epilogue,
                schedule=mma(stages=stages, split_k=split_k, producers=3),
                **RAGGED_LONG,
                **FEATURE,
            ),
        )


def tile_loops():
    """CTAs that compute several tiles, whole or shared, and values that the tensor
    memory accelerator copies."""
    # More tiles than SMs, in groups of which the last is smaller.
    many = {"tokens": 2101, "k": 130, "outputs": 40}
    for split_k, x in ((1, "gather"), (2, "copy")):
        kept = mma(
            (32, 16, 2),
            (2, 1),
            split_k=split_k,
            x=x,
            producers=2,
            persistent=True,
        )
        yield (
            f"mma-persistent-split{split_k}",
            Case("f16", 8, 32, 16, schedule=kept, **many, **FEATURE),
        )

    # Tiles that two CTAs share: none of fewer than SMs, all of 1.5 times as many,
    # and the last of 2.5 times as many; the ring goes round more than once.
    for tokens, epilogue in ((None, "none"), (2101, "gelu"), (3501, "residual")):
        kept = mma((32, 16, 2), (2, 1), producers=2, persistent=True, stream_k=True)
        sizes = {"tokens": tokens, "k": 300, "outputs": 40}
        yield (
            f"mma-stream-{epilogue}",
            Case(
                "bf16", 8, 32, 16, epilogue=epilogue, schedule=kept, **sizes, **FEATURE
            ),
        )

    # Values by the tensor memory accelerator, in the blocks that it writes: more
    # tiles than SMs.
    wide = {**many, "k": 300, "outputs": 600}
    for element, x, index, sizes, dims in (
        ("f16", "gather", "resident", wide, FEATURE),
        ("bf16", "gather", "resident", RAGGED, {"x_feature_major": True}),
        ("bf16", "copy", "staged", RAGGED, FEATURE),
    ):
        kept = mma(
            (64, 128, 2),
            (2, 4),
            3,
            x=x,
            index=index,
            producers=2,
            persistent=sizes is wide,
            tma=True,
        )
        yield (
            f"mma-tma-{element}-{x}{'' if dims is FEATURE else '-token-result'}",
            Case(element, 8, 32, 128, schedule=kept, **sizes, **dims),
        )


def warp_kernels():
    yield from copies()
    yield from rings()
    yield from producers()
    yield from tile_loops()
