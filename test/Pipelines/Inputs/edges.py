# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes and schedules at the edges, each through ptxas, and the shared memory
that the cost model predicts against what the launch asks for.

usage: edges.py PTXAS
"""

import re
import subprocess
import sys

from cases import Case, compile_text, schedule, text


def given(kind, x, index, tile, warps, stages=2, **case):
    chosen = schedule(kind, tile, warps, stages, 1, x, index)
    return Case(schedule=chosen, **case)


MODES = [(x, i) for x in ("gather", "copy") for i in ("resident", "staged")]
RAGGED = dict(tokens=77, k=224, outputs=200)
CASES = [
    # Seven windows in steps of two; a last tile with fewer panels.
    *(
        given("mma", x, i, (64, 128, 2), (2, 4), 3, panel=32, **RAGGED)
        for x, i in MODES
    ),
    *(
        given(
            "mma",
            x,
            i,
            (64, 128, 2),
            (2, 4),
            3,
            panel=32,
            batch=2,
            x_feature_major=True,
            y_feature_major=True,
            **RAGGED,
        )
        for x, i in MODES
    ),
    *(
        given("simt", x, i, (64, 64, 3), (1, 2), element="f32", panel=32, **RAGGED)
        for x, i in MODES
    ),
    # Tiles that start inside a panel.
    *(
        given("simt", "copy", i, (32, 64, 2), (1, 2), element="f32", panel=7, **RAGGED)
        for i in ("resident", "staged")
    ),
    *(
        given("mma", "copy", i, (32, 96, 2), (2, 2), panel=96, **RAGGED)
        for i in ("resident", "staged")
    ),
    Case("f32", 13, 16, 7, 77, 77, 1000),
    Case("f16", 13, 16, 24, 77, 77, 1000),
    Case("bf16", 1, 1, 96, 7, 77, 1000),
    Case("f32", 1, 2, 1, 1, 77, 1000, dim=1),
    Case("f16", 512, 1024, 64, 64, 2048, 1000),
    Case("f16", 100, 300, 64, 64, 2048, 1000),
]


# Too large for sm_86, which then says how much shared memory they need.
LARGE = [
    given(kind, x, i, tile, (2, 4), stages, element=element, panel=32)
    for kind, element, x, tile, stages in (
        ("mma", "f16", "gather", (128, 256, 4), 2),
        ("mma", "f16", "copy", (128, 256, 4), 3),
        ("simt", "f32", "gather", (128, 128, 4), 2),
        ("simt", "f32", "copy", (128, 128, 4), 2),
    )
    for i in ("resident", "staged")
]


def main():
    failed = 0
    for case in CASES:
        outcome = compile_text(text(case), case.chip, sys.argv[1])
        if not outcome.ok and not outcome.spills:
            failed += 1
            print(f"FAILED {case}\n  {outcome.message}")
    print(f"{len(CASES) - failed} of {len(CASES)} assembled")
    worst = 0.0
    for case in LARGE:
        source = text(case)
        threads = subprocess.run(
            ["nm-compile", "-", "-o", "-", "--emit=threads", "--tokens=2048"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        name = re.search(r"dynamic_shared_memory_size (%\w+)", threads).group(1)
        real = int(re.search(rf"{name} = arith.constant (\d+) : i32", threads)[1])
        refused = compile_text(source, "sm_86").message
        predicted = int(re.search(r"needs (\d+) bytes", refused)[1])
        worst = max(worst, (predicted - real) / real)
        if predicted < real:
            print(f"FAILED {case}: {real} bytes, predicted {predicted}")
    print(f"shared memory overestimated by {worst * 100:.0f} % at most")


if __name__ == "__main__":
    main()
