#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the profiler counts of products whose energy was measured, sparse and dense.

`make` writes the layers of result files of `draw.py --energy`; `metrics` names
those of METRICS that this ncu knows of the GPU; `ours` runs each layer once, with
its schedule, and `dense` multiplies the dense products of the same layers with
PyTorch. The latter two run under ncu:

    M=$(profile_energy.py metrics --chip gh100)
    ncu --target-processes all --csv --page raw --metrics $M --log-file ours.csv
        python profile_energy.py ours FOLDER --tool nm-run
    ncu --csv --page raw --metrics $M --log-file dense.csv
        python profile_energy.py dense FOLDER

`condense` makes a result file of both: for each layer, the sums over its kernels.

Usage: profile_energy.py make RESULT.json... --out FOLDER
       profile_energy.py ours FOLDER --tool NM_RUN
       profile_energy.py metrics [--chip CHIP]
       profile_energy.py dense FOLDER
       profile_energy.py condense FOLDER --ours OURS.csv --processes PROCESSES.json
                         --dense DENSE.csv --out OUT.json
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import subprocess

from layers import parse

# What a GPU does, and for how long; sums over a kernel, or shares of time.
METRICS = [
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_reads.sum",
    "smsp__inst_executed.sum",
    "sm__inst_executed_pipe_tensor.sum",
    "sm__inst_executed_pipe_fma.sum",
    "sm__inst_executed_pipe_alu.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__cycles_active.avg",
    "sm__cycles_elapsed.max",
]
# A kernel between two dense products: it fills a vector of this many numbers.
MARK = 12345


def read_layers(folder):
    return json.loads((folder / "layers.json").read_text("utf-8"))


def make(options):
    options.out.mkdir(parents=True, exist_ok=True)
    entries = []
    for path in options.results:
        entries += json.loads(path.read_text("utf-8"))["layers"]
    for entry in entries:
        parse(entry["layer"]).write(options.out)
    keys = ("layer", "tokens", "schedule", "kernels")
    kept = [{key: entry[key] for key in keys} for entry in entries]
    (options.out / "layers.json").write_text(json.dumps(kept) + "\n", "utf-8")
    print(f"{len(entries)} layers in {options.out}")


def name_metrics(options):
    command = ["ncu", "--query-metrics", "--chips", options.chip]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    known = {row.split()[0] for row in done.stdout.splitlines() if row.strip()}
    print(",".join(m for m in METRICS if m.split(".")[0] in known))


def run_ours(options):
    """Each layer in a process of its own, by whose number the log knows it."""

    def run(entry):
        command = [options.tool, str(options.folder / f"{entry['layer']}.mlir")]
        command += ["--size", str(entry["tokens"]), "--schedule", entry["schedule"]]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return {"layer": entry["layer"], "process": process.pid, "rc": process.wait()}

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(run, read_layers(options.folder)))
    (options.folder / "processes.json").write_text(json.dumps(done) + "\n", "utf-8")


def multiply(options):
    """One product of each layer, and a mark behind it."""
    import torch

    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    for entry in read_layers(options.folder):
        layer = parse(entry["layer"])
        m, n, k = layer.shape
        x = torch.randn(m, k, device="cuda", dtype=types[layer.type])
        w = torch.randn(k, n, device="cuda", dtype=types[layer.type])
        torch.cuda.synchronize()
        torch.full((MARK,), 1.0, device="cuda")
        torch.mm(x, w)
        torch.full((MARK,), 2.0, device="cuda")
        torch.cuda.synchronize()


def read_rows(path):
    """The rows of a log, without what ncu says beside the table and its units."""
    lines = path.read_text("utf-8").splitlines()
    start = next(i for i, text in enumerate(lines) if text.startswith('"ID"'))
    return list(csv.DictReader(lines[start:]))[1:]


def add(rows):
    """Sums of counts; of shares the mean, by time."""
    names = [name for name in METRICS if rows and name in rows[0]]
    numbers = [
        {name: float(row[name].replace(",", "")) for name in names} for row in rows
    ]
    times = [row["gpu__time_duration.sum"] for row in numbers]
    result = {}
    for name in names:
        column = [row[name] for row in numbers]
        is_share = ".pct" in name
        result[name] = (
            sum(c * t for c, t in zip(column, times)) / sum(times)
            if is_share
            else sum(column)
        )
    return result


def by_process(rows, layers, processes):
    """The rows of each layer: of its kernels, not of those that pack its weight."""
    numbers = {p["layer"]: str(p["process"]) for p in processes}
    return [
        [
            row
            for row in rows
            if row["Process ID"] == numbers[entry["layer"]]
            and row["Kernel Name"].split("(")[0] in entry["kernels"]
        ]
        for entry in layers
    ]


def between_marks(rows):
    """The kernels of each dense product: those between two fills."""
    groups, inside = [], False
    for row in rows:
        if "FillFunctor" in row["Kernel Name"]:
            inside = not inside
            if inside:
                groups.append([])
        elif inside:
            groups[-1].append(row)
    return groups


def condense(options):
    layers = read_layers(options.folder)
    processes = json.loads(options.processes.read_text("utf-8"))
    ours = by_process(read_rows(options.ours), layers, processes)
    dense = between_marks(read_rows(options.dense))
    if len(dense) != len(layers):
        raise SystemExit(f"{len(dense)} dense products, but {len(layers)} layers")
    for entry, rows in zip(layers, ours):
        if len(rows) != len(entry["kernels"]):
            raise SystemExit(f"{entry['layer']}: {len(rows)} of its kernels in the log")
    result = [
        {"layer": entry["layer"], "ours": add(o), "cublas": add(d)}
        for entry, o, d in zip(layers, ours, dense)
    ]
    options.out.write_text(json.dumps({"profiled": result}, indent=1) + "\n", "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("results", type=pathlib.Path, nargs="+")
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.set_defaults(do=make)
    command = commands.add_parser("metrics")
    command.add_argument("--chip", default="gh100")
    command.set_defaults(do=name_metrics)
    command = commands.add_parser("ours")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--tool", required=True)
    command.add_argument("--jobs", type=int, default=8)
    command.set_defaults(do=run_ours)
    command = commands.add_parser("dense")
    command.add_argument("folder", type=pathlib.Path)
    command.set_defaults(do=multiply)
    command = commands.add_parser("condense")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--ours", type=pathlib.Path, required=True)
    command.add_argument("--processes", type=pathlib.Path, required=True)
    command.add_argument("--dense", type=pathlib.Path, required=True)
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.set_defaults(do=condense)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
