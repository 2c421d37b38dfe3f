#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the schedule that the energy model chooses takes the least energy.

`make` draws layers of all domains of draw.py, and of each up to C schedules: what
nm-compile chooses by energy, by time and by their product, and the best by energy
of other families. It writes `list.txt` for `nm-run --batch`. A layer's schedules
follow each other twice, the second time in reverse, so that what drifts counts
for all of them alike. `condense` makes a result file of the report, and `judge`
reads it: how far what was chosen is from the least that was measured, and the
layers where it is not what is fastest.

Usage: energy_choice.py make --seed S --count N --out OUT --bin FOLDER [--gpu G]
       energy_choice.py condense REPORT.json --out RESULT.json
       energy_choice.py judge RESULT.json --bin FOLDER [--hold]
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

import shapes
from draw import DOMAINS, draw
from layers import parse
from make_configs import line, write_list
from report import table

# What may be missed: the geometric mean of chosen over least.
MOST_LOSS = 1.03
OBJECTIVES = ("energy", "time", "edp")
FLAGS = "--bench --bench-ms 20 --lock lock --energy --energy-seconds 0.4"


def ask(layer, tool, gpu, objective, count=1):
    """The candidates of the layer, as the compiler lays out its activations."""
    command = [str(tool), "-", "--candidates", str(count), "--gpu", gpu]
    command += ["--objective", objective, "--tokens", str(layer.shape[0])]
    done = subprocess.run(
        command, input=layer.text(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"energy_choice.py: {layer.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)[0]["candidates"]


def choose(layer, tool, gpu, count):
    """What each objective chooses, and the best of other families."""
    by_energy = ask(layer, tool, gpu, "energy")
    found = [by_energy[0]["schedule"]]
    found += [ask(layer, tool, gpu, name)[0]["schedule"] for name in OBJECTIVES[1:]]
    others = sorted(by_energy[1:], key=lambda c: c["energy"]["mj"])
    found += [candidate["schedule"] for candidate in others]
    return list(dict.fromkeys(found))[:count]


def make(options):
    domains = list(DOMAINS)
    layers = []
    for number, domain in enumerate(domains):
        count = options.count // len(domains) + (number < options.count % len(domains))
        layers.append(draw(options.seed + number, count, domain))
    # Of all domains in turn: a run that is cut short has seen all of them.
    turns = [
        group[i]
        for i in range(max(map(len, layers)))
        for group in layers
        if i < len(group)
    ]
    tool = options.bin / "nm-compile"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        chosen = list(
            pool.map(
                lambda layer: choose(layer, tool, options.gpu, options.candidates),
                turns,
            )
        )
    options.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for seed, (layer, schedules) in enumerate(zip(turns, chosen)):
        path = layer.write(options.out).relative_to(options.out)
        for turn in (schedules, schedules[::-1]):
            check = "--check " if turn is schedules else ""
            for schedule in turn:
                case = shapes.Case(layer, schedule=schedule)
                flags = f"{check}{FLAGS} --energy-repeats 1"
                lines.append(line(case, path, seed, flags))
    write_list(lines, options.out)
    print(f"{len(turns)} layers, {len(lines)} runs in {options.out}")


def condense(options):
    report = json.loads(options.report.read_text("utf-8"))
    layers = {}
    for run in report["runs"]:
        if "energy" not in run:
            continue
        name = pathlib.Path(run["file"]).stem
        layer = layers.setdefault(
            name, {"layer": name, "tokens": run["size"], "schedules": {}}
        )
        entry = layer["schedules"].setdefault(
            run["schedules"][0],
            {"kernels": run["kernels"], "mj": [], "us": [], "few_us": [], "passed": 1},
        )
        entry["passed"] &= run.get("passed", True)
        entry["mj"].append(run["energy"]["ours"]["mj"])
        entry["us"].append(run["energy"]["ours"]["us"])
        entry["few_us"].append(run["time"]["median_us"])
    gpu = next(run["gpu"] for run in report["runs"] if "gpu" in run)
    result = {"gpu": gpu, "commit": report["commit"], "choices": list(layers.values())}
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def mean(values):
    return statistics.fmean(values)


def judge_layer(entry, tool, gpu):
    """(layer, losses by objective, what energy's choice saves and costs), or None
    where the model's choice was not measured."""
    measured = {s: m for s, m in entry["schedules"].items() if m["passed"]}
    layer = parse(entry["layer"])
    chosen = {name: ask(layer, tool, gpu, name)[0]["schedule"] for name in OBJECTIVES}
    if any(schedule not in measured for schedule in chosen.values()):
        return None
    least = min(mean(m["mj"]) for m in measured.values())
    fastest = min(mean(m["us"]) for m in measured.values())
    loss = {name: mean(measured[s]["mj"]) / least for name, s in chosen.items()}
    slower = {name: mean(measured[s]["us"]) / fastest for name, s in chosen.items()}
    return layer, chosen, loss, slower


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def judge(path, folder):
    """(energy of what energy chooses over the least, the tables)"""
    report = json.loads(path.read_text("utf-8"))
    gpu = "h200" if "H200" in report["gpu"] else "h100"
    tool = folder / "nm-compile"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(
            pool.map(lambda entry: judge_layer(entry, tool, gpu), report["choices"])
        )
    known = [j for j in judged if j]
    if not known:
        raise SystemExit(f"{path}: at least one choice must have been measured")
    losses = {name: [loss[name] for _, _, loss, _ in known] for name in OBJECTIVES}
    rows = [
        [
            name,
            f"{geomean(losses[name]):.3f}",
            f"{max(losses[name]):.2f}",
            f"{geomean([slower[name] for _, _, _, slower in known]):.3f}",
        ]
        for name in OBJECTIVES
    ]
    apart = [
        [
            layer.name,
            f"{loss['energy'] / loss['time'] - 1:+.1%}",
            f"{slower['energy'] / slower['time'] - 1:+.1%}",
        ]
        for layer, chosen, loss, slower in known
        if chosen["energy"] != chosen["time"]
    ]
    text = (
        f"{report['gpu']}, {len(known)} layers; of {len(judged) - len(known)} more, "
        "what is chosen now was not measured.\n\n"
        + table(["objective", "energy / least", "most", "time / least"], rows)
        + f"\n\nIn {len(apart)} of them, energy chooses another schedule than time:"
        + "\n\n"
        + table(["layer", "energy", "time"], apart)
    )
    return geomean(losses["energy"]), text


def print_choices(options):
    loss, text = judge(options.report, options.bin)
    print(text)
    if options.hold and loss > MOST_LOSS:
        sys.exit(f"what energy chooses takes {loss:.3f} times the least")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("make")
    first.add_argument("--seed", type=int, required=True)
    first.add_argument("--count", type=int, default=60)
    first.add_argument("--candidates", type=int, default=4)
    first.add_argument("--gpu", default="h100")
    first.add_argument("--bin", type=pathlib.Path, required=True)
    first.set_defaults(do=make)
    second = commands.add_parser("condense")
    second.add_argument("report", type=pathlib.Path)
    second.set_defaults(do=condense)
    third = commands.add_parser("judge")
    third.add_argument("report", type=pathlib.Path)
    third.add_argument("--bin", type=pathlib.Path, required=True)
    third.add_argument("--hold", action="store_true")
    third.set_defaults(do=print_choices)
    for command in (first, second):
        command.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
