#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures on a GPU what its table of costs is fitted to, or judged by: kernels of
layers drawn at random, a line of JSON each (samples.py).

Needs the static tools (`make static`), Python and a driver. A quarter of an hour gives
some 2000 kernels. fit.py makes the table from them.

Half of the schedules of a layer are those that the model ranks first, and the others
any that it thinks not much slower, of all families of kernels. With --best N, all are
among the best N of a family, so that what the model ranks first can be compared with
the best that is known.

Usage: sample.py --tool nm-sparse --seed S --minutes M --out SAMPLES.jsonl
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

import draw
import samples
import shapes
from make_configs import line

# Schedules of a family that are candidates, and how much longer than the first one
# they may be predicted to take.
OF_FAMILY, SLOWEST = 60, 2.5
# Kernels that are measured in a minute, at most.
RATE = 400


def kind_of(one):
    """Costs depend on these, and on sizes: its family and kind of grid."""
    grid = re.search(r"grid = (.*)>$", one["schedule"])[1]
    return one["family"], re.sub(r"\d+", "", grid)


def choose(ranked, count, source, best):
    """The first schedules, the first of each kind, and some of the others."""
    ranked = sorted(ranked, key=lambda one: one["predicted_us"])
    limit = SLOWEST * ranked[0]["predicted_us"]
    names = [one["schedule"] for one in ranked if one["predicted_us"] <= limit]
    firsts = {kind_of(one): one["schedule"] for one in reversed(ranked)}
    firsts = source.sample(firsts.values(), len(firsts))
    chosen = dict.fromkeys([*names[: count // 2], *firsts])
    rest = [name for name in names if name not in chosen]
    if not best:
        rest = source.sample(rest, len(rest))
    return [*chosen, *rest][:count]


def list_schedules(layer, tool, count, best):
    """Schedules, and the flags that each needs."""
    found = []
    for layout in ("auto", "keep") if layer.layout == "token" else ("auto",):
        try:
            ranked, flags = draw.rank(
                layer, [tool, "nm-compile"], layout, best or OF_FAMILY
            )
        except SystemExit as error:
            print(error, file=sys.stderr)
            continue
        found += [(one, flags) for one in ranked]
    if not found:
        return []
    flags = {one["schedule"]: flags for one, flags in reversed(found)}
    source = draw.Draw(layer.name)
    chosen = choose([one for one, _ in found], count, source, best)
    return [(name, flags[name]) for name in chosen]


def draw_layers(seed, count, domains):
    """Layers of these domains in turn."""
    each = -(-count // len(domains))
    drawn = [draw.draw(f"{seed}, {domain}", each, domain) for domain in domains]
    return [layer for layers in zip(*drawn) for layer in layers]


def write_lists(layers, arguments, folder):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(
            lambda layer: list_schedules(
                layer, arguments.tool, arguments.candidates, arguments.best
            ),
            layers,
        )
        lines = []
        for seed, (layer, schedules) in enumerate(zip(layers, found)):
            path = layer.write(folder).relative_to(folder)
            for number, (schedule, flags) in enumerate(schedules):
                check = "" if number else "--check "
                flags = f"{check}--bench --bench-ms 25 --lock lock{flags}"
                lines.append(
                    line(shapes.Case(layer, schedule=schedule), path, seed, flags)
                )
    (folder / "list.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return len(lines)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, help="nm-sparse of build-static/bin")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--candidates", type=int, default=10, metavar="C")
    parser.add_argument(
        "--domains", nargs="+", choices=draw.DOMAINS, default=list(draw.DOMAINS)
    )
    parser.add_argument("--best", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args(argv)
    arguments.tool = os.path.abspath(arguments.tool)
    count = int(arguments.minutes * RATE / arguments.candidates)
    layers = draw_layers(arguments.seed, count, arguments.domains)
    with tempfile.TemporaryDirectory() as folder:
        kernels = write_lists(layers, arguments, pathlib.Path(folder))
        print(f"{len(layers)} layers, {kernels} kernels")
        command = [arguments.tool, "nm-run", "--batch", "list.txt", "--lock", "lock"]
        command += ["--jobs", str(arguments.jobs), "--json", "report.json"]
        command += ["--deadline", str(int(60 * arguments.minutes))]
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
        report = json.loads(pathlib.Path(folder, "report.json").read_text("utf-8"))
    measured = samples.write(report, arguments.out)
    print(f"{measured} kernels measured")
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
