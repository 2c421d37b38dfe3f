# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the products of warpgroups."""

from families import FEATURE, LAYOUTS, RAGGED, RAGGED_LONG, Case, schedule

# More tiles than SMs.
MANY = {"tokens": 2101, "k": 130, "outputs": 600}


def warpgroups_alone():
    """Warpgroups that copy what they multiply."""
    # Products of warpgroups: panels narrower than, as wide as and wider than a
    # tile, windows that fill k16 steps and that do not, one warpgroup and more.
    for element, n, m, panel, tile, warps, stages, split_k, index in (
        ("f16", 8, 16, 256, (128, 256, 4), (1, 8), 4, 1, "resident"),
        ("f16", 4, 16, 128, (256, 128, 8), (1, 8), 3, 1, "resident"),
        ("bf16", 2, 16, 64, (64, 256, 8), (1, 8), 3, 1, "staged"),
        ("bf16", 12, 32, 64, (128, 128, 1), (1, 4), 2, 2, "resident"),
        ("f16", 16, 32, 256, (128, 128, 2), (2, 4), 3, 1, "resident"),
        ("f16", 3, 7, 192, (64, 192, 5), (1, 12), 4, 1, "resident"),
    ):
        kept = schedule("wgmma", tile, warps, stages, split_k, index=index)
        for layout, dims in LAYOUTS.items():
            yield (
                f"wgmma-{element}-{n}of{m}-{panel}-{layout}",
                Case(element, n, m, panel, schedule=kept, **RAGGED, **dims),
            )
    for epilogue in ("relu", "gelu", "residual"):
        yield (
            f"wgmma-{epilogue}",
            Case(
                "f16",
                8,
                32,
                128,
                epilogue=epilogue,
                schedule=schedule("wgmma", (128, 128, 4), (1, 8)),
                **RAGGED_LONG,
                **FEATURE,
            ),
        )


def warpgroup_clusters():
    """Clusters that share the contraction of a tile: pieces that divide it and that do
    not, along tokens and along outputs, warpgroups beside each other along either,
    operands of the epilogue, and threads that copy what they multiply."""
    ring = (
        "values = bulk, index = resident}, pipeline = ring<stages = 3, producers = 4>"
    )
    for tile, warps, parts, epilogue in (
        ((256, 128, 64), "2, 4", 3, "none"),
        ((64, 128, 32), "1, 8", 4, "residual"),
        ((128, 64, 64), "2, 4", 2, "gelu"),
        ((64, 64, 32), "1, 4", 8, "relu"),
    ):
        kept = (
            f"#nm_tile.schedule<tile = {list(tile)}, "
            f"product = wgmma<warps = [{warps}]>, transfers = {{x = gather, {ring}, "
            f"grid = flat<split_k = {parts}, in_cluster = true>>"
        )
        for layout, dims in LAYOUTS.items():
            # Rows that are gathered are those of feature-major activations.
            dims = {**dims, "x_feature_major": True}
            yield (
                f"wgmma-cluster{parts}-{epilogue}-{layout}",
                Case("f16", 8, 32, 128, epilogue=epilogue, schedule=kept, tokens=None,
                     k=1100, outputs=200, **dims),
            )  # fmt: skip
    kept = (
        "#nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, "
        "transfers = {x = gather, values = copy, index = resident}, "
        "pipeline = async_groups<stages = 3>, "
        "grid = flat<split_k = 4, in_cluster = true>>"
    )
    for layout, dims in LAYOUTS.items():
        yield (
            f"mma-cluster4-{layout}",
            Case("f16", 8, 32, 64, schedule=kept, **RAGGED_LONG, **dims),
        )


def warpgroup_roles():
    """Warpgroups that multiply what another one copies: rings that go round more
    than once, and more tiles than SMs."""
    long = {**RAGGED, "k": 1100}
    for stages, split_k, epilogue, persistent, tma, sizes in (
        (2, 1, "gelu", False, False, RAGGED),
        (4, 2, "none", False, False, long),
        (3, 1, "residual", True, False, MANY),
        (2, 1, "relu", False, True, RAGGED),
        (3, 2, "none", False, True, long),
        (4, 1, "residual", True, True, MANY),
    ):
        kept = schedule(
            "wgmma",
            (64, 128, 2),
            (1, 8),
            stages,
            split_k,
            producers=4,
            persistent=persistent,
            tma=tma,
        )
        how = "tma" if tma else "producers"
        yield (
            f"wgmma-{how}-stages{stages}-split{split_k}-{epilogue}",
            Case(
                "f16", 8, 32, 128, epilogue=epilogue, schedule=kept, **sizes, **FEATURE
            ),
        )
    yield (
        "wgmma-tma-batch3",
        Case(
            "bf16",
            16,
            32,
            64,
            batch=3,
            schedule=schedule("wgmma", (64, 64, 1), (1, 4), 2, producers=4, tma=True),
            **RAGGED,
            **FEATURE,
        ),
    )


def shared_tiles():
    """Tiles of warpgroups that several CTAs share."""
    kept = schedule(
        "wgmma",
        (64, 128, 2),
        (1, 8),
        4,
        producers=4,
        persistent=True,
        tma=True,
        stream_k=True,
    )
    yield (
        "wgmma-stream-residual",
        Case(
            "f16",
            8,
            32,
            128,
            epilogue="residual",
            schedule=kept,
            **{**MANY, "k": 300},
            **FEATURE,
        ),
    )
    kept = schedule(
        "wgmma", (64, 128, 2), (1, 8), 3, producers=4, persistent=True, stream_k=True
    )
    # 288 tiles of 5 steps: 11 for each of 131 CTAs. (Of 240 tiles each would
    # have two, and share none.)
    sizes = {"tokens": 1024, "k": 300, "outputs": 700}
    yield (
        "wgmma-stream-batch3",
        Case("f16", 8, 32, 128, batch=3, schedule=kept, **sizes, **FEATURE),
    )


def tokens_as_rows():
    """Tokens, not outputs, are the rows of a product."""
    kept = schedule(
        "wgmma", (128, 128, 2), (2, 4), 3, producers=4, persistent=True, tma=True
    )
    yield (
        "wgmma-tma-token-major-result",
        Case(
            "f16",
            8,
            32,
            128,
            epilogue="residual",
            schedule=kept,
            x_feature_major=True,
            **{**MANY, "tokens": 3501, "k": 300},
        ),
    )
    # So they are where one product has the 256 outputs of a panel, and the warps
    # transpose a feature-major result: tiles that exist as a whole beside others,
    # and rows of odd length, which are written element by element.
    even = {"tokens": 150, "k": 556, "outputs": 300}
    for element, epilogue, roles, sizes in (
        ("f16", "cast", {}, even),
        ("f16", "relu", {"producers": 4, "persistent": True, "tma": True}, even),
        ("bf16", "gelu", {"producers": 4, "tma": True}, even),
        ("bf16", "cast", {"producers": 4}, {**RAGGED, "k": 556}),
        ("f16", "gelu", {"producers": 4, "tma": True}, {**even, "tokens": 301}),
        ("f16", "residual", {"producers": 4, "persistent": True}, even),
    ):
        kept = schedule("wgmma", (128, 256, 4), (2, 4), 3, **roles)
        tokens = sizes["tokens"] or "odd"
        yield (
            f"wgmma-tokens-by-panel-{element}-{epilogue}-{tokens}",
            Case(
                element,
                8,
                32,
                256,
                epilogue=epilogue,
                schedule=kept,
                **sizes,
                **FEATURE,
            ),
        )


def warpgroup_kernels():
    yield from warpgroups_alone()
    yield from warpgroup_clusters()
    yield from warpgroup_roles()
    yield from shared_tiles()
    yield from tokens_as_rows()
