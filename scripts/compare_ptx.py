#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the same layers with two builds and compares PTX and launches, byte by
byte.

usage: compare_ptx.py BEFORE AFTER [--suite NAME...] [--only TEXT] [--sample N]
                      [--json FILE] [--dump DIR] [--layers-of COMMIT]
                      [--kernels DIR [--equal-too]]

BEFORE and AFTER are build folders, or folders with an nm-compile. All layers of
compared_layers.py are some 1,800: a second of one core each. --suite compiles
suites of bench/shapes.py alone; --kernels writes those layers of bench/ that
differ for bench/pairs.py, which measures them on a GPU. Where the text form of
schedules changed between the two builds, --layers-of names a commit that still
writes the old one; schedule_spelling.py makes the new one of it.

Where ptxas is on the PATH the report says what it makes of both sides of a pair
that differs. Status 1 when a pair differs, or only one side compiles.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import compared_layers
import kernel_pairs
from schedule_spelling import respell_module

SIDES = ("before", "after")
NAMES = re.compile(r"(%[a-z]+|\$L__\w+?)(\d+)(?:_(\d+))?\b")


def tool_of(folder):
    for path in (folder / "bin" / "nm-compile", folder / "nm-compile"):
        if path.is_file():
            return path.resolve()
    sys.exit(
        f"compare_ptx.py: no nm-compile in {folder} or {folder}/bin: name a build "
        "folder, or one with the tools"
    )


def launches_of(manifest):
    """What the launches of a manifest ask for. The names of what they pass are no
    part of it: that the PTX is equal says that it is read alike."""
    return [
        {
            **{key: launch[key] for key in launch if key != "parameters"},
            "parameters": [p.get("type") for p in launch.get("parameters", [])],
        }
        for function in manifest.get("functions", [])
        for launch in function.get("launches", [])
    ]


def compile_item(tool, item, source, timeout=300):
    """{"ptx", "launches", "functions", "commit"}, or {"error"}."""
    with tempfile.TemporaryDirectory() as scratch:
        ptx, manifest = (pathlib.Path(scratch) / name for name in ("ptx", "json"))
        command = [str(tool), "-", "-o", str(ptx), "--manifest", str(manifest)]
        command += [f"--chip={item.chip}", *item.arguments]
        try:
            done = subprocess.run(
                command, input=source, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {timeout} seconds"}
        if done.returncode:
            said = done.stderr.strip() or f"status {done.returncode}"
            return {"error": said[:1000]}
        described = json.loads(manifest.read_text("utf-8"))
        return {
            "ptx": ptx.read_text("utf-8"),
            "launches": launches_of(described),
            "functions": described.get("functions", []),
            "commit": described.get("compiler", {}).get("commit", "unknown"),
        }


def without_names(ptx):
    """PTX whose registers and labels are numbered as they appear."""
    seen = {}
    number = collections.Counter()

    def rename(match):
        if match[0] not in seen:
            number[match[1]] += 1
            seen[match[0]] = f"{match[1]}{number[match[1]]}"
        return seen[match[0]]

    declared = re.sub(r"(\.reg \.\w+\s+%\w+)<\d+>", r"\1", ptx)
    return NAMES.sub(rename, declared)


def changed_lines(before, after):
    """Lines that only one of two texts has: (of the first, of the second)."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = [pathlib.Path(scratch) / side for side in SIDES]
        for path, text in zip(paths, (before, after)):
            path.write_text(text, "utf-8")
        said = subprocess.run(
            ["git", "diff", "--no-index", "--numstat", *map(str, paths)],
            capture_output=True,
            text=True,
        ).stdout
    added, removed = said.split()[:2] if said else (0, 0)
    return int(removed), int(added)


def assemble(ptxas, compiled, chip):
    """What ptxas and the launches say that the kernels use."""
    if not ptxas or "ptx" not in compiled:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "kernel.ptx"
        path.write_text(compiled["ptx"], "utf-8")
        command = [ptxas, "-v", f"-arch={chip}", str(path), "-o", f"{path}.cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip()[:1000]}

    def total(pattern):
        return sum(int(value) for value in re.findall(pattern, done.stderr))

    dynamic = [
        int(value)
        for launch in compiled["launches"]
        for value in [launch.get("dynamic_shared_memory", "0")]
        if str(value).isdigit()
    ]
    return {
        "registers": total(r"Used (\d+) registers"),
        "spill_bytes": total(r"(\d+) bytes spill (?:stores|loads)"),
        "shared_bytes": total(r"(\d+) bytes smem") + sum(dynamic),
    }


def compare(item, before, after, ptxas=None):
    """What is to be said of a pair: {"result", ...}. `result` is "equal",
    "refused" (by both), "different" or "one side"."""
    found = {"group": item.group, "name": item.name, "chip": item.chip}
    errors = [side.get("error") for side in (before, after)]
    if all(errors):
        return {**found, "result": "refused", "errors": errors}
    if any(errors):
        failed = SIDES[errors[0] is None]
        return {
            **found,
            "result": "one side",
            "failed": failed,
            "error": errors[0] or errors[1],
        }
    same_ptx = before["ptx"] == after["ptx"]
    if same_ptx and before["launches"] == after["launches"]:
        return {**found, "result": "equal"}
    found["result"] = "different"
    if before["launches"] != after["launches"]:
        found["launches"] = [before["launches"], after["launches"]]
    if not same_ptx:
        removed, added = changed_lines(before["ptx"], after["ptx"])
        found.update(lines_removed=removed, lines_added=added)
        names = [without_names(side["ptx"]) for side in (before, after)]
        found["only_names"] = names[0] == names[1]
    figures = [assemble(ptxas, side, item.chip) for side in (before, after)]
    if any(figures):
        found["ptxas"] = dict(zip(SIDES, figures))
    return found


def describe(found):
    """A line on a pair that is not equal."""
    name = f"{found['group']}: {found['name']} ({found['chip']})"
    if found["result"] == "one side":
        first = found["error"].splitlines()[0]
        return f"{name}: fails with {found['failed'].upper()} alone: {first}"
    what = []
    if "lines_added" in found:
        what.append(f"PTX -{found['lines_removed']} +{found['lines_added']} lines")
        if found["only_names"]:
            what.append("only registers and labels have other names")
    if "launches" in found:
        what.append("launches differ")
    for key in ("registers", "spill_bytes", "shared_bytes"):
        values = [found.get("ptxas", {}).get(side, {}).get(key) for side in SIDES]
        if values[0] != values[1]:
            what.append(f"{key} {values[0]} -> {values[1]}")
    return f"{name}: {', '.join(what)}"


def dump(folder, item, compiled):
    """Writes a pair as NAME.before.ptx and NAME.after.ptx."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.]+", "-", f"{item.group}-{item.name}-{item.chip}")
    for side, result in zip(SIDES, compiled):
        text = result.get("ptx") or result["error"]
        (folder / f"{name}.{side}.ptx").write_text(text, "utf-8")
    (folder / f"{name}.mlir").write_text(item.source, "utf-8")


class Progress:
    """Lines on what is not equal as it is found, and how far we are."""

    def __init__(self, total):
        self.total, self.done, self.started = total, 0, time.time()

    def step(self, found):
        self.done += 1
        if found["result"] in ("different", "one side"):
            print(describe(found), flush=True)
        if self.done % max(1, self.total // 20) == 0:
            seconds = time.time() - self.started
            left = seconds / self.done * (self.total - self.done)
            print(
                f"  {self.done} of {self.total}, {seconds:.0f} s, {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )


def run(arguments, items):
    tools = [tool_of(folder) for folder in (arguments.before, arguments.after)]
    ptxas = shutil.which("ptxas")
    commits = [set(), set()]
    pairs = arguments.kernels and kernel_pairs.Writer(arguments.kernels, ptxas)

    def handle(item):
        sources = item.source, respell_module(item.source)
        compiled = [compile_item(*pair) for pair in zip(tools, (item, item), sources)]
        for known, side in zip(commits, compiled):
            known.update({side["commit"]} if "commit" in side else ())
        found = compare(item, *compiled, ptxas)
        if arguments.dump and found["result"] in ("different", "one side"):
            dump(arguments.dump, item, compiled)
        if pairs and (found["result"] == "different" or arguments.equal_too):
            pairs.add(item, found["result"] == "equal", compiled)
        return found

    progress, results = Progress(len(items)), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = [pool.submit(handle, item) for item in items]
        for task in concurrent.futures.as_completed(tasks):
            results.append(task.result())
            progress.step(results[-1])
    counts = collections.Counter(found["result"] for found in results)
    named = dict(zip(SIDES, (", ".join(sorted(c)) for c in commits)))
    if pairs:
        pairs.finish(named, counts["equal"])
    return {
        "commits": named,
        "layers_of": arguments.layers_of or "working tree",
        "layers": len(items),
        "equal": counts["equal"],
        "different": counts["different"],
        "failed_on_one_side": counts["one side"],
        "refused_by_both": counts["refused"],
        "by_group": dict(collections.Counter(item.group for item in items)),
        "differing": sorted(
            (f for f in results if f["result"] in ("different", "one side")),
            key=lambda found: (found["group"], found["name"]),
        ),
    }


def arguments_of(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--suite", nargs="+", help="of bench/shapes.py, alone")
    parser.add_argument("--only", default="", help="names or groups with this text")
    parser.add_argument("--sample", type=int, metavar="N", help="N layers of all")
    parser.add_argument("--seed", type=int, default=1, help="of samples and drawings")
    parser.add_argument("--drawn", type=int, default=150, help="layers to draw")
    parser.add_argument("--layers-of", metavar="COMMIT", help="lists of this commit")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--dump", type=pathlib.Path, help="folder for what differs")
    parser.add_argument("--kernels", type=pathlib.Path, help="folder for pairs.py")
    parser.add_argument("--equal-too", action="store_true", help="with --kernels")
    return parser.parse_args(argv)


def main(argv=None):
    arguments = arguments_of(argv)
    with compared_layers.tree_of(arguments.layers_of) as tree:
        items = compared_layers.collect(
            tree, arguments.suite, arguments.drawn, arguments.seed
        )
    items = [i for i in items if arguments.only in f"{i.group}: {i.name} {i.chip}"]
    if arguments.sample:
        items = compared_layers.sample(items, arguments.sample, arguments.seed)
    if not items:
        sys.exit(f"compare_ptx.py: no layer has {arguments.only!r} in its name")
    report = run(arguments, items)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(
        f"{report['layers']} layers: {report['equal']} equal, "
        f"{report['different']} different, "
        f"{report['failed_on_one_side']} failed on one side, "
        f"{report['refused_by_both']} refused by both"
    )
    return 1 if report["different"] or report["failed_on_one_side"] else 0


if __name__ == "__main__":
    sys.exit(main())
