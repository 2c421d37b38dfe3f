# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the operations that each stage leaves for a short epilogue and a long
one.

usage: growth.py OUT_DIR SHORT LONG
"""

import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).parents[3] / "bench"
sys.path.insert(0, str(BENCH))
from compile_time import elementwise  # noqa: E402


def count(folder, steps):
    """{stage: operations}, with the lines of PTX."""
    output = folder / f"{steps}.ptx"
    command = ["nm-compile", "-", "-o", str(output), "--explain", "--tokens=2048"]
    said = subprocess.run(
        command, input=elementwise(steps), capture_output=True, text=True, check=True
    ).stdout
    found = {
        match[1]: int(match[2])
        for match in re.finditer(r"^(\w+) +\d+ -> (\d+) +ops", said, re.MULTILINE)
    }
    found["ptx"] = len(output.read_text("utf-8").splitlines())
    return found


def main():
    folder, short, long = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    few, many = count(folder, short), count(folder, long)
    for stage, operations in few.items():
        if many[stage] > 1.1 * long / short * operations:
            print(f"GROWS {stage}: {operations} operations, then {many[stage]}")
    print(f"{len(few)} stages compared")


if __name__ == "__main__":
    main()
