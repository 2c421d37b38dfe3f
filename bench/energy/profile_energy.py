#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the profiler counts of products whose energy was measured, sparse and dense.

`make` writes the layers of result files of `draw.py --energy`, and lists of them
for `nm-run --batch`; `metrics` names those of METRICS that this ncu knows of the
GPU. `dense` multiplies the dense products of the same layers with PyTorch. The
lists, and `dense`, run under ncu, several at a time: ncu profiles one kernel after
another, but the programs start side by side.

    M=$(profile_energy.py metrics --chip gh100)
    NCU="ncu --clock-control none --csv --page raw --metrics $M"
    $NCU --target-processes all -k regex:^f_ --log-file ours-0.csv
        nm-run --batch list-0.txt --json ours-0.json
    $NCU --log-file dense.csv python profile_energy.py dense FOLDER

`condense` makes a result file of all: for each layer, the sums over its kernels.

Usage: profile_energy.py make RESULT.json... --out FOLDER [--lists N]
       profile_energy.py metrics [--chip CHIP]
       profile_energy.py dense FOLDER
       profile_energy.py condense FOLDER --ours FOLDER --dense DENSE.csv
                         --out OUT.json
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import shapes
from layers import parse
from make_configs import line

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
# Random numbers, which operands repeat.
DRAWN = 1 << 22


def read_layers(folder):
    return json.loads((folder / "layers.json").read_text("utf-8"))


def make(options):
    options.out.mkdir(parents=True, exist_ok=True)
    entries = []
    for path in options.results:
        entries += json.loads(path.read_text("utf-8"))["layers"]
    keys = ("layer", "tokens", "schedule", "kernels")
    kept, lines = [], []
    for seed, entry in enumerate(entries):
        layer = parse(entry["layer"])
        path = layer.write(options.out).relative_to(options.out)
        case = shapes.Case(layer, schedule=entry["schedule"])
        lines.append(line(case, path, seed, ""))
        dense = entry["energy"]["cublas"]["layout"]
        kept.append({**{key: entry[key] for key in keys}, "dense_layout": dense})
    (options.out / "layers.json").write_text(json.dumps(kept) + "\n", "utf-8")
    for number in range(options.lists):
        # In turns: the first of each result file come first of each list.
        text = "\n".join(lines[number :: options.lists]) + "\n"
        (options.out / f"list-{number}.txt").write_text(text, "utf-8")
    print(f"{len(entries)} layers in {options.out}")


def name_metrics(options):
    command = ["ncu", "--query-metrics", "--chips", options.chip]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    known = {row.split()[0] for row in done.stdout.splitlines() if row.strip()}
    print(",".join(m for m in METRICS if m.split(".")[0] in known))


def multiply(options):
    """One product of each layer, between two marks."""
    import torch

    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    entries = read_layers(options.folder)
    shapes_of = [parse(entry["layer"]).shape for entry in entries]
    most = max(k * max(m, n) for m, n, k in shapes_of)
    # Copied from the host, so that no kernel draws them.
    drawn = torch.randn(DRAWN).repeat(most // DRAWN + 1)
    numbers = {dtype: drawn.to(dtype) for dtype in types.values()}

    def matrix(rows, columns, dtype):
        found = numbers[dtype][: rows * columns].view(rows, columns)
        return found.to("cuda")

    for entry in entries:
        layer = parse(entry["layer"])
        (m, n, k), dtype = layer.shape, types[layer.type]
        x = matrix(m, k, dtype)
        if entry["dense_layout"] == "tn":
            w = matrix(n, k, dtype).t()
        else:
            w = matrix(k, n, dtype)
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


def kernel_of(row):
    """Its name, without what ncu says of parameters."""
    return row["Kernel Name"].split("(")[0]


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
        total = (
            sum(c * t for c, t in zip(column, times)) / sum(times)
            if is_share
            else sum(column)
        )
        result[name] = float(f"{total:.6g}")
    return result


def by_layer(folder, layers):
    """{layer: rows of its kernels}, of all logs in `folder`. Each is beside the report
    of its runs, whose kernels follow each other as the runs do; the product's is last.

    A layer that ran other kernels than were measured is left out, with a warning.
    Raises SystemExit where a run failed, or the log has more runs or fewer.
    """
    kernels = {entry["layer"]: entry["kernels"] for entry in layers}
    found = {}
    for path in sorted(folder.glob("ours-*.json")):
        rows = read_rows(path.with_suffix(".csv"))
        for run in json.loads(path.read_text("utf-8"))["runs"]:
            if "error" in run:
                raise SystemExit(f"{path}: {run['arguments']}: {run['error']}")
            name, own = pathlib.Path(run["file"]).stem, []
            while rows and kernels[name][-1] not in map(kernel_of, own):
                own.append(rows.pop(0))
            names = [kernel_of(row) for row in own]
            if names == kernels[name]:
                found[name] = own
            elif kernels[name][-1] in names:
                print(f"{name} ran {names}, not {kernels[name]}: left out")
            else:
                raise SystemExit(f"{path}: the log ends before {name}")
        if rows:
            raise SystemExit(f"{path}: {len(rows)} kernels more than the runs have")
    return found


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
    ours = by_layer(options.ours, layers)
    dense = between_marks(read_rows(options.dense))
    if len(dense) != len(layers):
        raise SystemExit(f"{len(dense)} dense products, but {len(layers)} layers")
    result = [
        {"layer": entry["layer"], "ours": add(ours[entry["layer"]]), "cublas": add(d)}
        for entry, d in zip(layers, dense)
        if entry["layer"] in ours
    ]
    options.out.write_text(json.dumps({"profiled": result}, indent=1) + "\n", "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("results", type=pathlib.Path, nargs="+")
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.add_argument("--lists", type=int, default=6)
    command.set_defaults(do=make)
    command = commands.add_parser("metrics")
    command.add_argument("--chip", default="gh100")
    command.set_defaults(do=name_metrics)
    command = commands.add_parser("dense")
    command.add_argument("folder", type=pathlib.Path)
    command.set_defaults(do=multiply)
    command = commands.add_parser("condense")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--ours", type=pathlib.Path, required=True)
    command.add_argument("--dense", type=pathlib.Path, required=True)
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.set_defaults(do=condense)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
