#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes synchronization from compiled kernels, one operation at a time, and
tells which of the damaged kernels the emulator does not find.

A mutant is a kernel without one of its barriers, fences, waits, commits or
arrivals, one that takes a try_wait that gave up for one that waited, or one whose
mbarriers of one kind all count one arrival too few or too many. It is found when the
emulator reports a fault or the result is wrong.
Kernels whose CTAs share tiles run with the first CTAs first and with the last:
in either order other CTAs find the part of another.
Commits and waits of cp.async that no cp.async comes before, or only such that
an mbarrier counts, commits that nothing waits behind, and fences between proxies
that repeat one, are no mistakes to remove.

usage: mutate_kernels.py [--only TEXT] [--bin DIR] [--jobs N] [--json FILE]

Status 1 when less than 95 % of those that are mistakes are found.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/Integration/Emulator/Inputs"))
from kernels import kernels, text  # noqa: E402
from known_mutants import explain_survivor  # noqa: E402

REQUIRED = 0.95
SYNCHRONIZATION = re.compile(
    r"nvvm\.(barrier0|barrier|barrier\.arrive|bar\.warp\.sync"
    r"|cp\.async\.(commit\.group|wait\.group|mbarrier\.arrive)"
    r"|cp\.async\.bulk\.(commit_group|wait_group)"
    r"|mbarrier\.(init|expect_tx|arrive[\w.]*|try_wait[\w.]*|test\.wait)"
    r"|fence\.[\w.]+|memory\.barrier|cluster\.(arrive[\w.]*|wait)"
    r"|wgmma\.(fence|commit\.group\.sync|wait\.group\.sync)\.aligned)(?![\w.])"
)
INIT = re.compile(r"\s*nvvm\.mbarrier\.init %\w+, (?P<count>%\w+) :")
RESULT = re.compile(r"^(\s*%[\w]+) = .*[:>] *(i1|i32|i64)\s*$")


COPY = "nvvm.cp.async.shared.global"
COMMIT, WAIT = "nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group"
ARRIVE = "nvvm.cp.async.mbarrier.arrive"
PROXY = "nvvm.fence.proxy"
TRY_WAIT = "nvvm.mbarrier.try_wait"


class Mutant(NamedTuple):
    kernel: str
    operation: str  # "nothing": the kernel as it is
    line: int
    runs: list[str]  # arguments of nm-run
    no_mistake: str  # the reason, if it is known to be none


def mutate(lines: list[str], at: int) -> list[str]:
    """`lines` without the operation on line `at`; results become zero, or true
    for a wait."""
    result = RESULT.match(lines[at])
    if not result:
        return lines[:at] + lines[at + 1 :]
    value = "true" if result[2] == "i1" else f"0 : {result[2]}"
    constant = f"{result[1]} = llvm.mlir.constant({value}) : {result[2]}"
    return lines[:at] + [constant] + lines[at + 1 :]


def ignore_result(lines: list[str], at: int) -> list[str]:
    """`lines` that go on whatever the try_wait on line `at` gives."""
    result = RESULT.match(lines[at])
    tried = lines[at].replace(result[1].strip(), "%tried", 1)
    constant = f"{result[1]} = llvm.mlir.constant(true) : i1"
    return lines[:at] + [tried, constant] + lines[at + 1 :]


def count_others(lines: list[str], counts: str, more: int) -> list[str]:
    """`lines` with `more` arrivals at each mbarrier that counts `counts`."""
    changed = []
    for line in lines:
        match = INIT.match(line)
        if match and match["count"] == counts:
            number = f"%count{len(changed)}"
            changed += [
                f"{number}a = llvm.mlir.constant({more} : i32) : i32",
                f"{number} = llvm.add {counts}, {number}a : i32",
                line.replace(f", {counts} :", f", {number} :"),
            ]
        else:
            changed.append(line)
    return changed


def find_counts(lines: list[str]) -> dict[str, int]:
    """The values that mbarriers count, each with its first line."""
    found = {}
    for number, line in enumerate(lines):
        match = INIT.match(line)
        if match:
            found.setdefault(match["count"], number)
    return found


def find_operations(lines: list[str]) -> list[tuple[int, str]]:
    """Line and name of each operation that synchronizes, inside of kernels."""
    found = []
    inside = False
    for number, line in enumerate(lines):
        inside = inside or "gpu.module" in line
        match = SYNCHRONIZATION.search(line)
        if inside and match:
            found.append((number, match[0]))
    return found


class Kernel:
    """The blocks of the function around line `at`, and the branches between."""

    def __init__(self, lines: list[str], at: int):
        begin = max(i for i in range(at) if "llvm.func" in lines[i])
        self.at, self.lines, self.block_of, self.begin_of = at, lines, {}, {}
        self.targets = collections.defaultdict(set)
        block = "^bb0"
        for i in range(begin + 1, len(lines)):
            label = re.match(r"\s*(\^bb\d+)", lines[i])
            block = label[1] if label else block
            self.block_of[i] = block
            self.begin_of.setdefault(block, i)
            if "llvm.br" in lines[i] or "llvm.cond_br" in lines[i]:
                self.targets[block].update(re.findall(r"\^bb\d+", lines[i]))
            if re.match(r"\s*}\s*$", lines[i]):
                break

    def leads(self, first: int, second: int, unless: str = "") -> bool:
        """Whether line `second` can run after line `first`, with no operation
        `unless` between them."""
        seen, rest = set(), [first + 1]
        while rest:
            for i in range(rest.pop(), max(self.block_of) + 1):
                if i == second:
                    return True
                if unless and unless in self.lines[i]:
                    break
                if "llvm.br" in self.lines[i] or "llvm.cond_br" in self.lines[i]:
                    fresh = self.targets[self.block_of[i]] - seen
                    seen |= fresh
                    rest.extend(self.begin_of[block] for block in fresh)
                    break
                if "llvm.return" in self.lines[i]:
                    break
        return False

    def repeats(self, operation: str, unless: str) -> bool:
        """Whether `operation` comes before, with none of `unless` between them, in
        the block or in the one that the same condition led to before."""
        block = self.block_of[self.at]
        first = self.begin_of[block]
        for i in range(self.at - 1, first - 1, -1):
            if operation in self.lines[i]:
                return True
            if unless in self.lines[i]:
                return False
        condition = self.find_condition(block)
        before = max(
            (
                i
                for other, i in self.begin_of.items()
                if condition and i < first and self.find_condition(other) == condition
            ),
            default=first,
        )
        between = self.lines[before:first]
        return any(operation in line for line in between) and not any(
            unless in line for line in between
        )

    def find_condition(self, block: str) -> str:
        """The value that leads to `block` where it is true, if there is one."""
        for i in self.block_of:
            branch = re.match(r"\s*llvm.cond_br (%\w+), (\^bb\d+)", self.lines[i])
            if branch and branch[2] == block:
                return branch[1]
        return ""

    def find(self, operation: str) -> list[int]:
        return [i for i in self.block_of if operation in self.lines[i]]

    def may_follow(self, operation: str, unless: str = "") -> bool:
        return any(self.leads(i, self.at, unless) for i in self.find(operation))

    def may_precede(self, operation: str) -> bool:
        return any(self.leads(self.at, i) for i in self.find(operation))


def find_excuse(lines: list[str], at: int, operation: str) -> str:
    """Why a kernel without the operation on line `at` is none the worse."""
    kernel = Kernel(lines, at)
    if operation in (COMMIT, WAIT) and not kernel.may_follow(COPY):
        return "no cp.async comes before it"
    if operation in (COMMIT, WAIT) and not kernel.may_follow(COPY, unless=ARRIVE):
        return "an mbarrier counts each cp.async before it"
    if operation == COMMIT and not kernel.may_precede(WAIT):
        return "nothing waits behind it"
    if operation == PROXY and kernel.repeats(PROXY, unless="llvm.store"):
        return "another one comes before it, with no access between"
    return ""


def write_mutants(out: pathlib.Path, name: str, case, binaries: pathlib.Path):
    """Batch lines for the kernel of `case` and for each of its mutants."""
    source = out / f"{name}.mlir"
    source.write_text(text(case), encoding="utf-8")
    lowered = subprocess.run(
        [
            binaries / "nm-opt",
            "--nm-sparse-to-nvvm=chip=sm_90a host-memory=true tokens=77",
            source,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    orders = ["", " --last-first"] if "stream" in name else [""]

    def runs(number: int | str, lines: list[str]) -> list[str]:
        path = write(out, name, number, lines)
        run = f"{source} --device emulate --check --size m=77 --lowered {path}"
        return [run + order for order in orders]

    yield Mutant(name, "nothing", 0, runs(0, lowered), "")
    for number, operation in find_operations(lowered):
        excuse = find_excuse(lowered, number, operation)
        mutant = runs(number, mutate(lowered, number))
        yield Mutant(name, operation, number + 1, mutant, excuse)
        if operation == TRY_WAIT:
            ignored = runs(f"{number}i", ignore_result(lowered, number))
            ignoring = f"{operation} (result ignored)"
            yield Mutant(name, ignoring, number + 1, ignored, "")
    for counts, number in find_counts(lowered).items():
        for more, kind in ((-1, "less"), (1, "more")):
            lines = count_others(lowered, counts, more)
            mutant = runs(f"{number}{more:+}", lines)
            operation = f"nvvm.mbarrier.init (one arrival {kind})"
            yield Mutant(name, operation, number + 1, mutant, "")


def write(out: pathlib.Path, name: str, number: int | str, lines: list[str]):
    path = out / f"{name}.{number}.mlir"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        mutants = [
            mutant
            for name, case in kernels()
            if options.only in name
            for mutant in write_mutants(out, name, case, options.bin)
        ]
        listing = out / "list.txt"
        listing.write_text(
            "\n".join(run for m in mutants for run in m.runs) + "\n",
            encoding="utf-8",
        )
        report = out / "report.json"
        subprocess.run(
            [
                options.bin / "nm-run",
                f"--batch={listing}",
                f"--jobs={options.jobs}",
                f"--json={report}",
                "--timeout=60",
            ],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        runs = iter(json.loads(report.read_text(encoding="utf-8"))["runs"])

    survivors, excused = [], []
    totals, found = collections.Counter(), collections.Counter()
    broken = []
    for name, operation, line, orders, reason in mutants:
        done = [next(runs) for _ in orders]
        bad = [run for run in done if not run.get("passed")]
        survived = not bad
        if operation == "nothing":
            if bad:
                broken.append(f"{name}: {bad[0].get('error', 'wrong result')}")
            continue
        row = {"kernel": name, "operation": operation, "line": line}
        if survived and reason:
            excused.append({**row, "reason": reason})
            continue
        totals[operation] += 1
        found[operation] += not survived
        if survived:
            why = explain_survivor(name, operation)
            survivors.append({**row, "reason": why})

    total, killed = sum(totals.values()), sum(found.values())
    for operation, count in sorted(totals.items()):
        print(f"{operation}: {found[operation]} of {count} found")
    for row in survivors:
        print(
            f"not found: {row['kernel']} without {row['operation']} in line "
            f"{row['line']}: {row['reason']}"
        )
    for text_ in broken:
        print(f"FAILED unchanged: {text_}")
    print(
        f"{killed} of {total} mutants found, {len(survivors)} not; {len(excused)} more "
        "are known to be no mistakes"
    )
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "kernels": len({m.kernel for m in mutants}),
                    "mutants": total,
                    "found": killed,
                    "by_operation": {
                        operation: {"mutants": totals[operation], "found": count}
                        for operation, count in sorted(found.items())
                    },
                    "not_found": survivors,
                    "no_mistakes": excused,
                },
                indent=2,
            )
            + "\n",
            encoding="utf-8",
        )
    return 1 if broken or killed < REQUIRED * total else 0


if __name__ == "__main__":
    sys.exit(main())
