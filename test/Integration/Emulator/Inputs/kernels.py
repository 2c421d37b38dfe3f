# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that the emulator runs in the tests: every family of schedules,
with ragged sizes, both layouts, each element type and each kind of epilogue.

usage: kernels.py OUT_DIR [--only TEXT] [--device D]

Writes one MLIR file for each kernel and `list.txt` for `nm-run --batch`.
"""

import argparse
import pathlib

from bitmap_kernels import bitmap_kernels
from block_kernels import block_kernels
from families import text
from other_kernels import other_kernels
from panel_kernels import panel_kernels
from warp_kernels import warp_kernels
from warpgroup_kernels import warpgroup_kernels


def kernels():
    """Name and case of each kernel."""
    yield from warp_kernels()
    yield from warpgroup_kernels()
    yield from block_kernels()
    yield from other_kernels()
    yield from bitmap_kernels()
    yield from panel_kernels()


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
