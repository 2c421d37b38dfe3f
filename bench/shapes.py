# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: lists of shapes, and the suites that use them.

A shape is (tokens, outputs, contraction): m, n, k of the dense product.
"""

import dataclasses
import fnmatch
from typing import Optional

from layers import SPARSITIES, Layer

# NM-SpMM (arXiv 2503.01253): 100 points, pairs (n, k) of five LLaMA sizes.
LLAMA = [(2048, 5632), (4096, 11008), (5120, 13824), (6656, 17920), (8192, 22016)]
PAIRS = [
    pair
    for hidden, inner in LLAMA
    for pair in (
        (hidden, hidden),
        (3 * hidden, hidden),
        (hidden, inner),
        (inner, hidden),
    )
]
NMSPMM = [(m, n, k) for m in (256, 512, 1024, 2048, 4096) for n, k in PAIRS]

# nmSPARSE (MLSys'23): M9 to M32; M1 to M8 are one token each.
NMSPARSE_PAIRS = [  # (k, n)
    (1024, 1024),
    (2048, 2048),
    (4096, 4096),
    (8192, 8192),
    (1024, 4096),
    (4096, 1024),
    (5120, 20480),
    (20480, 5120),
]
NMSPARSE = [(m, n, k) for m in (256, 1024, 4096) for k, n in NMSPARSE_PAIRS]

CUBES = [(4096,) * 3, (8192,) * 3]


def is_large(shape):
    m, n, k = shape
    return m >= 2048 and min(n, k) >= 4096


LARGE = sorted({s for s in NMSPMM + NMSPARSE + CUBES if is_large(s)})

SHAPES = {"nmspmm": NMSPMM, "nmsparse": NMSPARSE, "cubes": CUBES, "large": LARGE}


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer, and a schedule where the model is not to choose."""

    layer: Layer
    label: str = ""
    schedule: Optional[str] = None


def cases(shapes, types, lengths, layouts=("feature",), epilogues=("product",)):
    return [
        Case(Layer(type_, sparsity, length, layout, shape, epilogue))
        for shape in shapes
        for type_ in types
        for length in lengths
        for layout in layouts
        for epilogue in epilogues
        for sparsity in SPARSITIES
    ]


def simt(tile, warps, stages, x, index, split_k=1):
    grid = f"flat<split_k = {split_k}>" if split_k > 1 else "flat"
    return (
        f"#nm_tile.schedule<tile = {list(tile)}, "
        f"product = simt<warps = {list(warps)}>, "
        f"transfers = {{x = {x}, values = copy, index = {index}}}, "
        f"pipeline = async_groups<stages = {stages}>, grid = {grid}>"
    )


# The steps of NM-SpMM's ablation, as schedules: each adds one thing to the step
# before. Its first version has no tiles in shared memory, which no schedule
# says; "blocking" has them, with one output for each thread.
def ablation(rows):
    """{step: schedule}, for K steps of `rows` kept rows: one window each."""
    large = (64, 128, rows), (1, 4)
    return {
        "blocking": simt((32, 32, rows), (4, 8), 2, "copy", "staged"),
        "hierarchical tiling": simt(*large, 2, "copy", "staged"),
        "resident index": simt(*large, 2, "copy", "resident"),
        "packing": simt(*large, 2, "gather", "resident"),
        "pipelining": simt(*large, 4, "gather", "resident"),
        "split-K": simt(*large, 4, "gather", "resident", 2),
    }


ABLATION_SHAPES = [(4096, 4096, 4096), (256, 4096, 4096)]

# What the mma schedule, of GPUs without wgmma, makes of an H200: steps of 64 rows
# (48 at 62.5 %), warps that only copy, values through the TMA; tiles whose outputs
# are one panel.
MMA_ROWS = {"50": 64, "62.5": 48, "75": 64, "87.5": 64}
MMA_TILES = {128: ("256, 128", "4, 2"), 256: ("128, 256", "2, 4")}
MMA_LABEL = "mma.sync"


def mma(sparsity, length):
    tile, warps = MMA_TILES[length]
    return (
        f"#nm_tile.schedule<tile = [{tile}, {MMA_ROWS[sparsity]}], "
        f"product = mma<warps = [{warps}]>, "
        "transfers = {x = gather, values = bulk, index = resident}, "
        "pipeline = ring<stages = 4, producers = 4>, grid = persistent>"
    )


# What the cost model is fitted to: large and small products of each kind.
MODEL = (
    cases([(4096, 4096, 4096)], ["f16"], [64, 128, 256])
    + cases([(8192, 8192, 8192), (2048, 11008, 4096)], ["f16"], [128, 256])
    + cases([(256, 8192, 8192), (1024, 4096, 11008)], ["f16"], [128])
    + cases([(256, 4096, 4096)], ["f16"], [64, 256])
    + cases([(2048, 4096, 4096)], ["f16"], [128], ["token"])
    + cases([(2048, 4096, 4096)], ["f32"], [32], ["feature", "token"])
    + cases([(256, 4096, 11008)], ["f32"], [32])
)

SUITES = {
    # The quickest look: the two cubes in every type.
    "cubes": cases(CUBES, ["f16"], [128, 256])
    + cases(CUBES[:1], ["bf16"], [128])
    + cases(CUBES[:1], ["f32"], [32, 64]),
    "large": cases(LARGE, ["f16"], [128]),
    "large-256": cases(LARGE, ["f16"], [256]),
    "lengths": cases(CUBES, ["f16", "bf16"], [64, 128, 256]),
    "layouts": cases(CUBES, ["f16"], [128], ["feature", "token", "mixed"]),
    "types": cases(CUBES[:1], ["bf16"], [128], ["feature", "token", "mixed"])
    + cases(CUBES[:1], ["f32"], [32], ["feature", "token", "mixed"]),
    "epilogues": cases(CUBES, ["f16"], [128], epilogues=["product", "gelu"]),
    "nmsparse": cases(NMSPARSE, ["f16"], [128]) + cases(NMSPARSE, ["f32"], [32]),
    "nmspmm": cases(NMSPMM, ["f32"], [32]),
    "model": [case for case in MODEL if case.layer.sparsity != "62.5"],
    # Six points that span both.
    "nmspmm-few": cases(NMSPMM[::17], ["f32"], [32, 64]),
    "small": cases(
        sorted({s for s in NMSPARSE + NMSPMM if s[0] in (256, 1024)}), ["f16"], [128]
    ),
    "mma": [
        Case(
            Layer("f16", sparsity, length, "feature", shape),
            MMA_LABEL,
            mma(sparsity, length),
        )
        for shape in CUBES
        for length in MMA_TILES
        for sparsity in SPARSITIES
    ],
    "ablation": [
        Case(Layer("f32", sparsity, 32, "feature", shape), label, schedule)
        for shape in ABLATION_SHAPES
        for sparsity in SPARSITIES
        for label, schedule in {
            **ablation(int(SPARSITIES[sparsity].split(":")[0])),
            "the model's choice": None,
        }.items()
    ],
}


def select(names, only=""):
    """The cases of several suites, each once. `only` holds patterns, such as
    "f16,s50,4096x*": a name must have a matching part for each."""
    wanted = [pattern for pattern in only.split(",") if pattern]
    chosen = [case for name in names for case in SUITES[name]]
    return [
        case
        for case in dict.fromkeys(chosen)
        if all(fnmatch.filter(case.layer.name.split("_"), p) for p in wanted)
    ]
