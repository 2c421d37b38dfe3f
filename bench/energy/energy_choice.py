#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the schedule that the energy model chooses takes the least energy.

`make` draws layers of all domains of draw.py, and of each up to C schedules: what
nm-compile chooses by energy, by time and by their product, and those predicted to take
least energy of the two best of each family. It writes two lists for `nm-run --batch`.
In `list.txt`, a layer's schedules follow each other twice, the second time in reverse,
so that what drifts counts for all of them alike; run it with NM_SPARSE_CUBLAS=none,
which takes half as long as beside cuBLAS. `check.txt` has each once, compared with a
float64 product. `condense` makes a result file of their reports, and `judge` reads it:
how far what was chosen is from the least that was measured, and the layers where it is
not what is chosen by time. The least of several means is too low by chance: so it is
also chosen by one loop, and compared in the other.

With --beside, `make` lists only schedules that a result file lacks, each layer's beside
what is chosen by energy, and `condense` adds them to it. Energies and times of another
run are scaled by the schedule that both have.

Usage: energy_choice.py make --seed S --count N --out OUT --bin FOLDER [--gpu G]
                             [--beside RESULT.json]
       energy_choice.py condense REPORT.json... --out RESULT.json
                                 [--beside RESULT.json]
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import shapes
from draw import DOMAINS, draw, embedding_flags
from energy_samples import gpu_of, read_choice_report
from layers import parse
from make_configs import line, write_list
from report import table

# What may be missed: the geometric mean of chosen over least.
MOST_LOSS = 1.03
OBJECTIVES = ("energy", "time", "edp")
FLAGS = "--bench --bench-ms 20 --lock lock --energy --energy-seconds 0.4"
FLAGS += " --energy-repeats 1"


def ask_product(layer, tool, gpu, objective, count=1):
    """What nm-compile says of the layer, as it lays out its activations."""
    command = [str(tool), "-", "--candidates", str(count), "--gpu", gpu]
    command += ["--objective", objective, "--tokens", str(layer.shape[0])]
    done = subprocess.run(
        command, input=layer.text(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"energy_choice.py: {layer.name}: {done.stderr.strip()}")
    (product,) = json.loads(done.stdout)
    return product


def ask(layer, tool, gpu, objective):
    """The schedule that the objective chooses."""
    return ask_product(layer, tool, gpu, objective)["candidates"][0]["schedule"]


def predict(layer, tool, gpu, schedule):
    """The model's scores of a schedule, by objective; None if it is not legal now."""
    command = [str(tool), "-", "--candidates", "1", "--gpu", gpu]
    command += ["--tokens", str(layer.shape[0])]
    done = subprocess.run(
        command, input=layer.text(schedule), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None
    (product,) = json.loads(done.stdout)
    mj, us = product["given"]["energy"]["mj"], product["given"]["predicted_us"]
    return {"energy": mj, "time": us, "edp": mj * us}


def choose(layer, tool, gpu, count):
    """What each objective chooses, and the two best of each family; and the flags
    that they need."""
    product = ask_product(layer, tool, gpu, "energy", 2)
    by_energy = product["candidates"]
    found = [by_energy[0]["schedule"]]
    found += [ask(layer, tool, gpu, name) for name in OBJECTIVES[1:]]
    others = sorted(by_energy[1:], key=lambda c: c["energy"]["mj"])
    found += [candidate["schedule"] for candidate in others]
    return list(dict.fromkeys(found))[:count], embedding_flags(layer, product)


def make(options):
    domains = list(DOMAINS)
    layers = []
    for number, domain in enumerate(domains):
        count = options.count // len(domains) + (number < options.count % len(domains))
        layers.append(draw(options.seed + number, count, domain))
    # Domains take turns: a run that is cut short has seen all of them.
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
    if options.beside:
        turns, chosen = leave_out(turns, chosen, read_choices(options.beside))
    options.out.mkdir(parents=True, exist_ok=True)
    lines, checks = [], []
    for seed, (layer, (schedules, needed)) in enumerate(zip(turns, chosen)):
        path = layer.write(options.out).relative_to(options.out)
        for turn in (schedules, schedules[::-1]):
            for schedule in turn:
                case = shapes.Case(layer, schedule=schedule)
                lines.append(line(case, path, seed, FLAGS + needed))
                if turn is schedules:
                    checks.append(line(case, path, seed, "--check" + needed))
    write_list(lines, options.out)
    (options.out / "check.txt").write_text("\n".join(checks) + "\n", "utf-8")
    print(f"{len(turns)} layers, {len(lines)} runs in {options.out}")


def read_choices(path):
    """{layer: its entry} of a result file."""
    return {e["layer"]: e for e in read_choice_report(path)["choices"]}


def leave_out(layers, chosen, known):
    """The layers and schedules that `known` lacks, each layer's after one that it has:
    the choice by energy, if it was measured."""
    kept = []
    for layer, (schedules, needed) in zip(layers, chosen):
        had = known[layer.name]["schedules"] if layer.name in known else {}
        new = [schedule for schedule in schedules if schedule not in had]
        shared = [schedule for schedule in (*schedules, *had) if schedule in had][:1]
        if new:
            kept.append((layer, (shared + new, needed)))
    return [layer for layer, _ in kept], [found for _, found in kept]


def gather(runs):
    """{layer: its entry} of runs with energies; those without say whether results are
    right."""
    layers, passed = {}, {}
    for run in runs:
        key = pathlib.Path(run["file"]).stem, run["schedules"][0]
        passed[key] = passed.get(key, True) and run.get("passed", True)
    for run in runs:
        if "energy" not in run:
            continue
        name, schedule = pathlib.Path(run["file"]).stem, run["schedules"][0]
        layer = layers.setdefault(
            name, {"layer": name, "tokens": run["size"], "schedules": {}}
        )
        entry = layer["schedules"].setdefault(
            schedule,
            {
                "kernels": run["kernels"],
                "mj": [],
                "us": [],
                "few_us": [],
                "passed": int(passed[name, schedule]),
            },
        )
        entry["mj"].append(run["energy"]["ours"]["mj"])
        entry["us"].append(run["energy"]["ours"]["us"])
        entry["few_us"].append(run["time"]["median_us"])
    return layers


def add_beside(known, layers):
    """Adds to `known` the schedules of `layers` that it lacks, scaled by what both
    have. Layers that share none are left out."""
    for name, layer in layers.items():
        had = known[name]["schedules"] if name in known else {}
        shared = [s for s in layer["schedules"] if s in had]
        if not shared:
            print(f"{name} has no schedule that was measured before: left out")
            continue
        for key in ("mj", "us", "few_us"):
            scale = geomean(
                [mean(had[s][key]) / mean(layer["schedules"][s][key]) for s in shared]
            )
            for entry in layer["schedules"].values():
                entry[key] = [scale * number for number in entry[key]]
        for schedule, entry in layer["schedules"].items():
            had.setdefault(schedule, entry)


def condense(options):
    reports = [json.loads(path.read_text("utf-8")) for path in options.reports]
    runs = [run for report in reports for run in report["runs"] if "size" in run]
    layers = gather(runs)
    if options.beside:
        known = read_choices(options.beside)
        add_beside(known, layers)
        layers = known
    gpu = next(run["gpu"] for run in runs if "gpu" in run)
    commit = reports[0]["commit"]
    result = {"gpu": gpu, "commit": commit, "choices": list(layers.values())}
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def mean(values):
    return statistics.fmean(values)


class Judged:
    """What each objective chooses of a layer, beside the best that was measured."""

    def __init__(self, entry, chosen):
        measured = {s: m for s, m in entry["schedules"].items() if m["passed"]}
        self.layer, self.chosen = parse(entry["layer"]), chosen
        self.is_known = all(schedule in measured for schedule in chosen.values())
        if not self.is_known:
            return
        least = min(mean(m["mj"]) for m in measured.values())
        fastest = min(mean(m["us"]) for m in measured.values())
        self.loss, self.slower, self.other = {}, {}, {}
        for name, schedule in chosen.items():
            self.loss[name] = mean(measured[schedule]["mj"]) / least
            self.slower[name] = mean(measured[schedule]["us"]) / fastest
            self.other[name] = self.compare(measured, schedule)
        # The best by one loop beside the best of the other: what loops differ by.
        self.noise = self.compare(measured, None)

    @staticmethod
    def compare(measured, schedule):
        """Energy of `schedule` over that of the least by the other loop, for both
        loops; of None, energy of the latter over the least. 1 without a second loop.
        """
        loops = {s: m["mj"] for s, m in measured.items() if len(m["mj"]) > 1}
        if not loops or schedule not in (None, *loops):
            return 1.0
        found = []
        for one, other in ((0, 1), (1, 0)):
            best = loops[min(loops, key=lambda s: loops[s][one])][other]
            if schedule is None:
                found.append(best / min(mj[other] for mj in loops.values()))
            else:
                found.append(loops[schedule][other] / best)
        return geomean(found)


def judge_layer(entry, tool, gpu):
    """Judges the best of what was measured: what the model chooses of all schedules
    may be newer than the measurement."""
    layer = parse(entry["layer"])
    measured = [name for name, one in entry["schedules"].items() if one["passed"]]
    found = {name: predict(layer, tool, gpu, name) for name in measured}
    found = {name: scores for name, scores in found.items() if scores}
    chosen = {
        objective: min(found, key=lambda name: found[name][objective], default=None)
        for objective in OBJECTIVES
    }
    return Judged(entry, chosen)


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def compare_objectives(known):
    """The table of objectives."""
    rows = [
        [
            name,
            f"{geomean([j.loss[name] for j in known]):.3f}",
            f"{max(j.loss[name] for j in known):.2f}",
            f"{geomean([j.other[name] for j in known]):.3f}",
            f"{geomean([j.slower[name] for j in known]):.3f}",
        ]
        for name in OBJECTIVES
    ]
    head = ["objective", "energy / least", "most", "by another loop", "time / least"]
    return table(head, rows)


def compare_choices(known):
    """Where energy chooses another schedule than time."""
    apart = [j for j in known if j.chosen["energy"] != j.chosen["time"]]
    if not apart:
        return "Energy chooses what time chooses, for all of them."
    found = [
        (
            j.layer.name,
            j.loss["energy"] / j.loss["time"],
            j.slower["energy"] / j.slower["time"],
        )
        for j in apart
    ]
    found.sort(key=lambda row: row[1])
    rows = [[name, f"{mj - 1:+.1%}", f"{us - 1:+.1%}"] for name, mj, us in found]
    rows.append(
        ["all of these"]
        + [f"{geomean([row[i] for row in found]) - 1:+.1%}" for i in (1, 2)]
    )
    return (
        f"In {len(apart)} of them, energy chooses another schedule than time:\n\n"
        + table(["layer", "energy", "time"], rows)
    )


def judge(path, folder):
    """(energy of what energy chooses over the least, the tables)"""
    report = read_choice_report(path)
    gpu = gpu_of(report)
    tool = folder / "nm-compile"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(
            pool.map(lambda entry: judge_layer(entry, tool, gpu), report["choices"])
        )
    known = [j for j in judged if j.is_known]
    if not known:
        raise SystemExit(f"{path}: at least one schedule must be legal now")
    schedules = [m for entry in report["choices"] for m in entry["schedules"].values()]
    text = (
        f"{report['gpu']}, {len(known)} layers, {len(schedules)} schedules; of "
        f"{len(judged) - len(known)} more layers, nothing that was measured is legal."
        f"\n\n{compare_objectives(known)}\n\n"
        f"The best by one loop takes {geomean([j.noise for j in known]):.3f} times the "
        f"best of the other: that much is chance.\n\n{compare_choices(known)}"
    )
    return geomean([j.loss["energy"] for j in known]), text


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
    second.add_argument("reports", type=pathlib.Path, nargs="+")
    second.set_defaults(do=condense)
    third = commands.add_parser("judge")
    third.add_argument("report", type=pathlib.Path)
    third.add_argument("--bin", type=pathlib.Path, required=True)
    third.add_argument("--hold", action="store_true")
    third.set_defaults(do=print_choices)
    for command in (first, second):
        command.add_argument("--out", type=pathlib.Path, required=True)
        command.add_argument("--beside", type=pathlib.Path, metavar="RESULT")
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
