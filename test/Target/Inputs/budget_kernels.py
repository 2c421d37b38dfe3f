# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that have budgets: of each product those whose registers, spills or
inner loops a change is likely to touch."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Pipelines" / "Inputs"))
from byte_budgets import KERNELS_OF_BYTES  # noqa: E402
from cases import Case, schedule  # noqa: E402
from panel_budgets import KERNELS_OF_PANELS  # noqa: E402

FEATURE = {"x_feature_major": True, "y_feature_major": True}


def wgmma(tile, warps=(1, 8), stages=4, **roles):
    return schedule("wgmma", tile, warps, stages, **roles)


def expand(tile, warps, stages, **roles):
    return schedule(
        "wgmma_expand", tile, warps, stages, 1, "bulk", "bulk", 4, tma=True, **roles
    )


def flagged(tile, warps, stages, grid, flag="segments"):
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, "
        f"product = wgmma_expand<warps = {warps}, {flag} = true>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


def sparse(tile, warps, stages, grid, ahead=False):
    flag = ", ahead = true" if ahead else ""
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, "
        f"product = wgmma_sp<warps = {warps}{flag}>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


def levels(tile, warps, stages, grid, ahead=False):
    """Of V:N:M: the rows that panels keep are gathered."""
    bulk = "x = bulk, values = bulk, index = bulk"
    gathered = "x = gather, values = bulk, index = resident"
    return sparse(tile, warps, stages, grid, ahead).replace(bulk, gathered)


def sparse_warps(tile, warps, stages, grid="flat"):
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, "
        f"product = mma_sp<warps = {list(warps)}>, "
        "transfers = {x = copy, values = copy, index = staged}, "
        f"pipeline = async_groups<stages = {stages}>, grid = {grid}>"
    )


def direct(product, tile, warps, shares=None):
    """Of a product that reads global memory."""
    shared = "" if shares is None else f", shares = {shares}"
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, "
        f"product = {product}<warps = {warps}{shared}>, "
        "transfers = {x = direct, values = direct, index = direct}, "
        "pipeline = sequential>"
    )


GATHER = schedule("simt", (128, 64, 2), (2, 2), 3)
WHOLE_WINDOWS = schedule("simt", (64, 128, 1), (1, 4), 3, 1, "copy")
PRODUCERS = schedule("simt", (256, 128, 1), (2, 4), 4, 1, "copy", producers=4)
MMA = schedule("mma", (128, 128, 4), (2, 2), 3)
MMA_WHOLE_WINDOWS = schedule("mma", (128, 128, 4), (2, 4), 4, 1, "copy")
KERNELS = {
    "simt, gather": Case("f32", 12, 32, 32, schedule=GATHER, **FEATURE),
    "simt, copy": Case("f32", 16, 32, 32, schedule=WHOLE_WINDOWS, **FEATURE),
    "simt, producers": Case("f32", 16, 32, 32, schedule=PRODUCERS, **FEATURE),
    "simt, token-major": Case("f32", 16, 32, 32, schedule=WHOLE_WINDOWS),
    "simt, GELU": Case("f32", 12, 32, 32, schedule=GATHER, epilogue="gelu"),
    "dot": Case("f16", 8, 32, 1, tokens=1, schedule=direct("dot", (1, 32, 512), 32)),
    "dot, 8 tokens": Case(
        "f16", 8, 16, 1, tokens=8, schedule=direct("dot", (8, 32, 512), 16)
    ),
    "panel_dot": Case(
        "f16", 8, 32, 32, tokens=1, schedule=direct("panel_dot", (1, 256, 128), 16, 16)
    ),
    "panel_dot, groups": Case(
        "bf16", 8, 16, 32, tokens=2, schedule=direct("panel_dot", (2, 64, 256), 8, 32)
    ),
    "panel_dot, 8 tokens": Case(
        "f16", 16, 32, 128, tokens=8, schedule=direct("panel_dot", (8, 256, 64), 8, 8)
    ),
    **{
        f"mma_expand, {name}": Case(
            element,
            n,
            m,
            1,
            tokens=tile[0],
            schedule=direct("mma_expand", tile, 8, shares),
            **layout,
        )
        for name, element, n, m, tile, shares, layout in (
            ("8 tokens", "f16", 8, 16, (8, 64, 128), 4, {}),
            ("16 tokens, feature-major", "bf16", 8, 16, (16, 64, 128), 4, FEATURE),
            ("long windows", "f16", 16, 32, (16, 128, 128), 2, {}),
            ("64 tokens", "f16", 4, 16, (64, 256, 32), 1, {}),
        )
    },
    "mma": Case("f16", 16, 32, 128, schedule=MMA, **FEATURE),
    "mma, token-major": Case("bf16", 16, 32, 128, schedule=MMA_WHOLE_WINDOWS),
    "mma, GELU": Case("f16", 16, 32, 128, schedule=MMA, epilogue="gelu", **FEATURE),
    **{
        f"mma, persistent, values by TMA{name}": Case(
            element,
            n,
            32,
            128,
            schedule=schedule(
                "mma",
                (256, 128, windows),
                (4, 2),
                4,
                producers=4,
                persistent=True,
                tma=True,
            ),
            epilogue=epilogue,
            **FEATURE,
        )
        for name, element, n, windows, epilogue in (
            ("", "f16", 16, 4, "cast"),
            (", GELU", "bf16", 8, 8, "gelu"),
        )
    },
    "wgmma": Case("f16", 16, 32, 256, schedule=wgmma((128, 256, 4)), **FEATURE),
    "wgmma, producers": Case(
        "f16", 16, 32, 256, schedule=wgmma((128, 256, 4), producers=4), **FEATURE
    ),
    "wgmma, producers, L = 128, GELU": Case(
        "bf16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4),
        epilogue="gelu",
        **FEATURE,
    ),
    "wgmma, values by TMA": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, tma=True),
        **FEATURE,
    ),
    "wgmma, persistent, values by TMA": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
        **FEATURE,
    ),
    "wgmma, persistent, values by TMA, token-major result": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
        x_feature_major=True,
    ),
    "wgmma, persistent, values by TMA, L = 128, GELU": Case(
        "f16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4, persistent=True, tma=True),
        epilogue="gelu",
        **FEATURE,
    ),
    **{
        f"wgmma, persistent, values by TMA, {epilogue}{result}": Case(
            "f16",
            16,
            32,
            256,
            schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
            epilogue=epilogue,
            x_feature_major=True,
            y_feature_major=not result,
        )
        for epilogue in ("gelu", "residual")
        for result in ("", ", token-major result")
    },
    **{
        f"wgmma, persistent, values by TMA, tokens by panel, {epilogue}": Case(
            element,
            n,
            32,
            256,
            schedule=wgmma(
                (128, 256, windows),
                (2, 4),
                stages,
                producers=4,
                persistent=True,
                tma=True,
            ),
            epilogue=epilogue,
            **FEATURE,
        )
        for epilogue, element, n, windows, stages in (
            ("cast", "f16", 12, 8, 3),
            ("gelu", "bf16", 16, 4, 4),
        )
    },
    "wgmma, persistent": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True),
        **FEATURE,
    ),
    "wgmma, persistent, L = 128": Case(
        "bf16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4, persistent=True),
        **FEATURE,
    ),
    **{
        f"wgmma_expand, {name}": Case(element, n, m, 1, schedule=how, **layout)
        for name, element, n, m, how, layout in (
            (
                "persistent",
                "f16",
                8,
                16,
                expand((256, 128, 4), 8, 5, persistent=True),
                {},
            ),
            (
                "stream-K, feature-major",
                "bf16",
                16,
                32,
                expand((256, 128, 2), 8, 4, stream_k=True, persistent=True),
                FEATURE,
            ),
            ("few tokens", "f16", 4, 16, expand((16, 448, 4), 28, 5), {}),
            ("64 tokens", "f16", 2, 4, expand((64, 256, 16), 16, 5), {}),
            *(
                (
                    f"ahead, {pattern}",
                    "f16",
                    *map(int, pattern.split(":")),
                    flagged(tile, 8, stages, "persistent", "ahead"),
                    layout,
                )
                for pattern, tile, stages, layout in (
                    ("8:16", (256, 128, 32), 5, {}),
                    ("16:32", (256, 128, 32), 5, FEATURE),
                    ("4:16", (128, 128, 16), 8, {}),
                )
            ),
            (
                "segments",
                "f16",
                8,
                16,
                flagged((256, 128, 32), 8, 4, "persistent"),
                FEATURE,
            ),
            (
                "segments, stream-K",
                "bf16",
                16,
                32,
                flagged((128, 256, 64), 8, 2, "persistent<stream_k = true>"),
                FEATURE,
            ),
            (
                "segments, 64 tokens",
                "f16",
                4,
                16,
                flagged((64, 256, 32), 16, 3, "flat"),
                FEATURE,
            ),
        )
    },
    **{
        f"mma_sp, {name}": Case(
            element, 2, 4, 1, schedule=how, chip=chip, epilogue=epilogue, **layout
        )
        for name, element, how, chip, epilogue, layout in (
            (
                "sm_80",
                "f16",
                sparse_warps((128, 128, 32), (2, 2), 3),
                "sm_80",
                "gelu",
                {},
            ),
            (
                "sm_80, feature-major",
                "bf16",
                sparse_warps((128, 256, 32), (2, 4), 3),
                "sm_80",
                "cast",
                FEATURE,
            ),
            (
                "sm_89, 16 tokens",
                "f16",
                sparse_warps((16, 64, 64), (1, 2), 3, "flat<split_k = 4>"),
                "sm_89",
                "none",
                {},
            ),
            (
                "sm_120a",
                "f16",
                sparse_warps((128, 128, 32), (2, 2), 3),
                "sm_120a",
                "cast",
                {},
            ),
        )
    },
    "wgmma_sp, 8 bits": Case(
        "f8E4M3FN",
        2,
        4,
        1,
        epilogue="cast",
        schedule=sparse((256, 128, 64), 8, 5, "persistent<cluster = 2>", ahead=True),
    ),
    **{
        f"wgmma_sp, {name}": Case(element, 2, 4, 1, schedule=how, **layout)
        for name, element, how, layout in (
            (
                "clusters",
                "f16",
                sparse((256, 128, 32), 8, 5, "persistent<cluster = 2>", ahead=True),
                {},
            ),
            (
                "feature-major",
                "bf16",
                sparse((256, 128, 64), 8, 2, "persistent"),
                FEATURE,
            ),
            (
                "stream-K",
                "f16",
                sparse((192, 192, 32), 12, 4, "persistent<stream_k = true>"),
                {},
            ),
            ("16 tokens", "f16", sparse((16, 128, 64), 8, 8, "flat<split_k = 2>"), {}),
        )
    },
    **{
        f"wgmma_sp, V:N:M, {name}": Case(
            "f16", 4, 8, panel, inner="2:4", schedule=how, **FEATURE
        )
        for name, panel, how in (
            ("128", 128, levels((256, 128, 32), 8, 5, "persistent", ahead=True)),
            ("256", 256, levels((128, 256, 64), 8, 3, "persistent")),
            (
                "192 tokens",
                256,
                levels((192, 256, 32), 8, 5, "persistent", ahead=True),
            ),
            ("64", 64, levels((256, 64, 32), 4, 6, "persistent", ahead=True)),
            ("64 tokens", 64, levels((64, 64, 64), 4, 4, "flat")),
        )
    },
    **KERNELS_OF_BYTES,
    **KERNELS_OF_PANELS,
}
