# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schedules of wgmma, and of mma with producers, that the model proposes, for
the emulator: each tile with each distribution of warps and each role of theirs at
least once, in a ring of 8 stages and in others.

usage: candidates.py OUT_DIR [--every]

Writes one MLIR file for each kernel and `list.txt` for `nm-run --batch`. The
schedules are those for large layers; the layers that run have few tiles, of
which the last is not full.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "Pipelines" / "Inputs"))
from cases import Case, text  # noqa: E402

# Tokens, contraction and outputs: no multiples of tiles, windows or panels.
RUN = {"tokens": None, "k": 620, "outputs": 328}
SIZE = 264
CASES = [
    Case("f16", 8, 16, 128, x_feature_major=True, y_feature_major=True),
    Case("f16", 4, 16, 256, x_feature_major=True, y_feature_major=True),
    Case("bf16", 12, 32, 64, x_feature_major=True, epilogue="gelu"),
    Case("f16", 8, 32, 128, x_feature_major=True, epilogue="residual"),
    Case("bf16", 2, 16, 192, x_feature_major=True, y_feature_major=True),
    Case("f16", 16, 32, 512, x_feature_major=True, y_feature_major=True),
    Case(
        "bf16", 8, 32, 256, x_feature_major=True, y_feature_major=True, epilogue="cast"
    ),
]
KIND = re.compile(
    r"tile = \[(\d+), (\d+), \d+\], product = ((\w+)<.*?\]>), transfers = (\{.*?), "
    r"index = (\w+)\}, pipeline = (\w+)<stages = (\d+).*?>, grid = (\w+)(<.*?>)?>"
)


def propose(case):
    """The model's schedules, best first: for many tokens, and for few."""
    found = []
    for tokens in (16384, 256):
        done = subprocess.run(
            ["nm-compile", "-", "--candidates", "1000", f"--tokens={tokens}"],
            input=text(case),
            capture_output=True,
            text=True,
            check=True,
        )
        for candidate in json.loads(done.stdout)[0]["candidates"]:
            schedule = candidate["schedule"]
            if "= wgmma" in schedule or "= mma" in schedule and "producers" in schedule:
                found.append(schedule)
    return list(dict.fromkeys(found))


def kernels(every):
    """(name, case): of each kind of schedule the first case that has it, and
    the cases take turns."""
    seen = set()
    proposed = [propose(case) for case in CASES]
    count = 0
    while any(proposed):
        for case, schedules in zip(CASES, proposed):
            while schedules:
                schedule = schedules.pop(0)
                found = KIND.search(schedule).groups()
                tokens, outputs, tile, product, copies, index, *rest = found
                pipeline, stages, grid, shared = rest
                # In rings of 8 stages producer warps copy in turns.
                roles = (pipeline, stages == "8", grid, bool(shared))
                kinds = {(tokens, outputs, tile, copies, *roles)}
                # Each way to find rows, but not in each tile.
                kinds.add((product, copies, index, *roles))
                if kinds <= seen and not every:
                    continue
                seen |= kinds
                count += 1
                yield (
                    f"{count}-{case.n}of{case.m}-{case.panel}",
                    dataclasses.replace(case, schedule=schedule, **RUN),
                )
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--every", action="store_true", help="in every case")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, case in kernels(arguments.every):
        path = arguments.out / f"{name}.mlir"
        path.write_text(text(case), encoding="utf-8")
        lines.append(
            f"{path} --device emulate --check --size m={SIZE} --seed {len(lines)}"
        )
    (arguments.out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} kernels in {arguments.out}")


if __name__ == "__main__":
    main()
