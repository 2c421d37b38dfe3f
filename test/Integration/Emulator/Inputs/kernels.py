# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that the emulator runs in the tests: every family of schedules,
with ragged sizes, both layouts, each element type and each kind of epilogue.

usage: kernels.py OUT_DIR [--only TEXT] [--device D]

Writes one MLIR file for each kernel and `list.txt` for `nm-run --batch`.
"""

import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "Pipelines" / "Inputs"))
from cases import Case, schedule, text  # noqa: E402

FEATURE = {"x_feature_major": True, "y_feature_major": True}
# Tiles of 128 x 256 x 256, as large as one CTA's work gets.
LARGE = {"tokens": 128, "k": 256, "outputs": 256}
# No size is a multiple of a tile, a window or a panel, and the ring of stages
# goes round more than once.
RAGGED = {"tokens": None, "k": 300, "outputs": 200}
RAGGED_LONG = {"tokens": None, "k": 1100, "outputs": 72}


def simt(tile=(64, 64, 1), warps=(1, 2), stages=3, split_k=1, **modes):
    return schedule("simt", tile, warps, stages, split_k, **modes)


def mma(tile=(64, 64, 2), warps=(2, 2), stages=3, split_k=1, **modes):
    return schedule("mma", tile, warps, stages, split_k, **modes)


def blocks():
    """Blocks of several contraction steps: each format in each layout, with the
    model's schedule, and each product with what it can make of them. The
    contraction ends inside a block or between the blocks of a window."""
    layouts = {"token": {}, "feature": FEATURE}
    for (layout, dims), (element, n, m, block) in itertools.product(
        layouts.items(),
        (
            ("f32", 2, 4, (2, 32)),
            ("f32", 3, 8, (4, 4)),
            ("f32", 1, 2, (64, 64)),
            ("f16", 8, 16, (2, 64)),
            ("bf16", 5, 8, (4, 4)),
            ("f16", 4, 8, (8, 128)),
            ("bf16", 2, 8, (16, 128)),
            ("f16", 1, 4, (64, 64)),
        ),
    ):
        # (Products of tensor cores need panels of 8 outputs.)
        panel = block[1] if element == "f32" else max(8, block[1])
        case = Case(element, n, m, panel, block_k=block[0], **RAGGED_LONG, **dims)
        yield f"block-{element}-{block[0]}x{panel}-{layout}", case

    modes = [("packed", "resident"), ("unpacked", "resident"), ("unpacked", "staged")]
    for (layout, dims), (operands, index) in itertools.product(layouts.items(), modes):
        how = f"{layout}-{operands}-{index}"
        modes_ = {"operands": operands, "index": index}
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
            kept = mma((64, 64, windows), **role, **modes_)
            yield (
                f"block-mma-{how}-{n}of{m}-{block_k}",
                Case(
                    element, n, m, 64, block_k=block_k, schedule=kept, **RAGGED, **dims
                ),
            )
    # Token-major activations that are gathered 16 bytes at a time: panels
    # narrower than a tile, rows of odd length, a result in either layout, tiles
    # whose rows are tokens, boxes of the values.
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
        for result, dims in (("token", {}), ("feature", {"y_feature_major": True})):
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


def kernels():
    """Name and case of each kernel."""
    layouts = {"token": {}, "feature": FEATURE}
    modes = [("packed", "resident"), ("unpacked", "resident"), ("unpacked", "staged")]
    for (layout, dims), (operands, index) in itertools.product(layouts.items(), modes):
        how = f"{layout}-{operands}-{index}"
        modes_ = {"operands": operands, "index": index}
        yield (
            f"simt-{how}",
            Case("f32", 8, 32, 32, schedule=simt(**modes_), **RAGGED, **dims),
        )
        for element in ("f16", "bf16"):
            yield (
                f"mma-{element}-{how}",
                Case(element, 8, 32, 64, schedule=mma(**modes_), **RAGGED, **dims),
            )

    # Rings of each depth, and the sum of several CTAs.
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

    # Warps that only copy.
    for (layout, dims), (operands, index) in itertools.product(layouts.items(), modes):
        how = f"producers-{layout}-{operands}-{index}"
        modes_ = {"operands": operands, "index": index}
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
        for layout, dims in layouts.items():
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

    # More tiles than SMs, in groups of which the last is smaller.
    many = {"tokens": 2101, "k": 130, "outputs": 40}
    for split_k, operands in ((1, "packed"), (2, "unpacked")):
        kept = mma(
            (32, 16, 2),
            (2, 1),
            split_k=split_k,
            operands=operands,
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
    for element, operands, index, sizes, dims in (
        ("f16", "packed", "resident", wide, FEATURE),
        ("bf16", "packed", "resident", RAGGED, {"x_feature_major": True}),
        ("bf16", "unpacked", "staged", RAGGED, FEATURE),
    ):
        kept = mma(
            (64, 128, 2),
            (2, 4),
            3,
            operands=operands,
            index=index,
            producers=2,
            persistent=sizes is wide,
            tma=True,
        )
        yield (
            f"mma-tma-{element}-{operands}{'' if dims is FEATURE else '-token-result'}",
            Case(element, 8, 32, 128, schedule=kept, **sizes, **dims),
        )

    # Warpgroups that multiply what another one copies.
    # Rings that go round more than once, and more tiles than SMs.
    long = {**RAGGED, "k": 1100}
    many = {"tokens": 2101, "k": 130, "outputs": 600}
    for stages, split_k, epilogue, persistent, tma, sizes in (
        (2, 1, "gelu", False, False, RAGGED),
        (4, 2, "none", False, False, long),
        (3, 1, "residual", True, False, many),
        (2, 1, "relu", False, True, RAGGED),
        (3, 2, "none", False, True, long),
        (4, 1, "residual", True, True, many),
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
            **{**many, "k": 300},
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

    # Tokens, not outputs, are the rows of a product.
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
            **{**many, "tokens": 3501, "k": 300},
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

    # What surrounds the product. The model gives f16 a ring of 8 steps.
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

    # Patterns: from single elements to panels wider than a tile.
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
    yield from blocks()
    for tokens in (1, 7, 33):
        yield (
            f"tokens{tokens}",
            Case("f16", 8, 32, 64, tokens=tokens, k=2600, outputs=136, **FEATURE),
        )

    # The tile problem whose time is bounded.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="names that hold this text")
    parser.add_argument("--device", default="emulate")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = []
    chosen = [(name, case) for name, case in kernels() if arguments.only in name]
    # The same inputs on each device, for scripts/compare_outputs.py.
    for seed, (name, case) in enumerate(chosen):
        path = arguments.out / f"{name}.mlir"
        path.write_text(text(case), encoding="utf-8")
        line = (
            f"{path} --device {arguments.device} --check --size m=77 "
            f"--seed {seed} --output {arguments.out / name}"
        )
        lines.append(line)
        # The second of two CTAs that share a tile is another one in this order.
        if "stream" in name and arguments.device == "emulate":
            lines.append(line + "-last-first --last-first")
    (arguments.out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} kernels in {arguments.out}")


if __name__ == "__main__":
    main()
