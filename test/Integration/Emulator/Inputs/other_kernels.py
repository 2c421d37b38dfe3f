# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with what surrounds a product, with patterns of all kinds, and of the
largest tiles. The model chooses most of their schedules."""

from families import FEATURE, RAGGED, RAGGED_LONG, Case, mma, schedule, simt

# As large as one CTA's work gets.
LARGE = {"tokens": 128, "k": 256, "outputs": 256}


def epilogues():
    """Elementwise operations, batches and mixed layouts. The model gives f16 a ring
    of 8 steps."""
    for epilogue in ("relu", "gelu", "residual"):
        yield (
            f"simt-{epilogue}",
            Case("f32", 4, 32, 32, epilogue=epilogue, **RAGGED_LONG),
        )
        yield (
            f"mma-{epilogue}",
            Case(
                "f16",
                12,
                32,
                64,
                epilogue=epilogue,
                **{**RAGGED_LONG, "k": 2400},
                **FEATURE,
            ),
        )
        yield (
            f"mma-bf16-{epilogue}",
            Case("bf16", 8, 16, 32, epilogue=epilogue, **RAGGED_LONG),
        )
    for batch, shared in ((3, False), (2, True)):
        yield (
            f"batch{batch}" + ("-shared" if shared else ""),
            Case("f16", 8, 16, 32, batch=batch, shared_weight=shared, **RAGGED),
        )
    yield "outputs-by-inputs", Case("f16", 8, 16, 64, dim=1, **RAGGED)
    yield "mixed-layouts", Case("f32", 8, 32, 32, x_feature_major=True, **RAGGED)


def patterns():
    """Patterns from single elements to panels wider than a tile, and few tokens."""
    for element, n, m, panel in (
        ("f32", 2, 4, 1),
        ("f32", 1, 2, 4),
        ("f32", 13, 16, 7),
        ("f32", 3, 7, 24),
        ("f32", 100, 300, 128),
        ("f16", 1, 1, 64),
        ("f16", 5, 64, 40),
        ("f16", 2, 4, 8),
        ("bf16", 16, 32, 256),
        ("bf16", 128, 256, 96),
    ):
        yield f"{element}-{n}of{m}-{panel}", Case(element, n, m, panel, **RAGGED_LONG)
    for tokens in (1, 7, 33):
        yield (
            f"tokens{tokens}",
            Case("f16", 8, 32, 64, tokens=tokens, k=2600, outputs=136, **FEATURE),
        )


def large_tiles():
    """The tile problem whose time is bounded."""
    large = {
        "simt": Case(
            "f32",
            16,
            32,
            32,
            schedule=simt((128, 128, 1), (2, 4), 2),
            **LARGE,
            **FEATURE,
        ),
        "mma-f16": Case(
            "f16",
            16,
            32,
            128,
            schedule=mma((128, 128, 2), (2, 2), 3),
            **LARGE,
            **FEATURE,
        ),
        "mma-bf16": Case(
            "bf16", 16, 32, 128, schedule=mma((128, 128, 2), (2, 4), 3), **LARGE
        ),
        "wgmma": Case(
            "f16",
            8,
            16,
            256,
            schedule=schedule("wgmma", (128, 256, 8), (1, 8), 2),
            **LARGE,
            **FEATURE,
        ),
    }
    for name, case in large.items():
        yield f"large-{name}", case


def other_kernels():
    yield from epilogues()
    yield from patterns()
    yield from large_tiles()
