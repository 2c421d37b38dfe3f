# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits for the kernels of each family: registers, spilled bytes and shared memory
as ptxas and the launch have them.

usage: budgets.py PTXAS [--table FILE] [--update] [--only TEXT]

Without --update, a kernel that uses more than its limit is a failure, named with both
numbers; less is not. A kernel whose products ptxas makes wait for one another
(wgmma) fails whatever the table says. --update writes limits that a kernel may reach
without losing a CTA of an SM: the difference belongs into the review of the change.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Pipelines" / "Inputs"))
import cases  # noqa: E402
from budget_kernels import KERNELS  # noqa: E402

TABLE = pathlib.Path(__file__).parents[1] / "budgets.json"

# The bytes of shared memory of an SM, and those of them that each CTA reserves.
SHARED_OF_SM = {
    "sm_80": 167936,
    "sm_86": 102400,
    "sm_89": 102400,
    "sm_90a": 233472,
    "sm_100a": 233472,
    "sm_120a": 102400,
}
RESERVED = 1024
REGISTERS_OF_SM = 65536
THREADS_OF_SM = 2048


def measure(case, ptxas):
    """What the kernel of `case` uses, and its threads for each CTA."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, manifest = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.json")
        # The token-major kernels, not a transposition and others.
        command = ["nm-compile", "-", "-o", ptx, "--tokens=2048"]
        command += ["--manifest", manifest]
        command += ["--layout", "keep", "--chip", case.chip]
        subprocess.run(command, input=cases.text(case), text=True, check=True)
        report = subprocess.run(
            [ptxas, "-v", f"-arch={case.chip}", ptx, "-o", os.path.join(folder, "k")],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        source = pathlib.Path(ptx).read_text("utf-8")
        launches = pathlib.Path(manifest).read_text("utf-8")

    def number(pattern, said):
        return sum(int(value) for value in re.findall(pattern, said))

    # Registers are given out in groups of eight. The kernel has more of them than
    # the one before it that aligns rows.
    registers = max(map(int, re.findall(r"Used (\d+) registers", report)))
    used = {
        "registers": (registers + 7) // 8 * 8,
        "spill_bytes": number(r"(\d+) bytes spill (?:stores|loads)", report),
        "shared_bytes": number(r"(\d+) bytes smem", report)
        + number(r'"dynamic_shared_memory": "(\d+)"', launches),
    }
    # ptxas says so when it makes wgmma wait where the kernel does not.
    serialized = len(re.findall("serialized|is injected", report))
    threads = max(map(int, re.findall(r"\.maxntid (\d+)", source)))
    return used, serialized, threads


def find_limits(used, threads, chip):
    """What a kernel that uses `used` may use while as many of its CTAs, of as many
    threads, fit in an SM."""
    shared = SHARED_OF_SM[chip]
    ctas = min(
        REGISTERS_OF_SM // (used["registers"] * threads),
        shared // (used["shared_bytes"] + RESERVED),
        THREADS_OF_SM // threads,
    )
    return {
        "registers": min(256, REGISTERS_OF_SM // (ctas * threads) // 8 * 8),
        "spill_bytes": used["spill_bytes"],
        "shared_bytes": shared // ctas - RESERVED,
    }


def compare(name, limits, used, serialized):
    """Lines on what `used` has too much of."""
    lines = []
    for what, value in used.items():
        limit = limits.get(what)
        if limit is None or value > limit:
            lines.append(f"FAILED {name}: {what} is {value}, the limit is {limit}")
    if serialized:
        lines.append(f"FAILED {name}: ptxas serializes its products: {serialized}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptxas")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="names that hold this text")
    arguments = parser.parse_args()
    kernels = {name: case for name, case in KERNELS.items() if arguments.only in name}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = dict(
            zip(
                kernels,
                pool.map(lambda case: measure(case, arguments.ptxas), kernels.values()),
            )
        )
    table = json.loads(arguments.table.read_text()) if arguments.table.exists() else {}
    if arguments.update:
        for name, (used, _, threads) in measured.items():
            table[name] = find_limits(used, threads, KERNELS[name].chip)
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(table[name])}"
            for name in KERNELS
            if name in table
        )
        arguments.table.write_text("{\n" + lines + "\n}\n")
        return 0
    failures = []
    for name, (used, serialized, _) in measured.items():
        failures += compare(name, table.get(name, {}), used, serialized)
    print("\n".join(failures))
    failed = len({line.split(":")[0] for line in failures})
    print(f"{len(measured) - failed} of {len(measured)} within their limits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
