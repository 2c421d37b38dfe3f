#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges the ranking of `nm-compile --advise` on layers drawn at random, by a seed.

First, writes one MLIR file for each pattern that is compiled of each layer, at one
number of tokens, `list.txt` for `nm-run --batch`, which runs in OUT, and
`predicted.json`. Then, with --judge, reads the report of that run: how much longer
the pattern that was ranked first takes than the one that is measured fastest.

Usage: advise_bar.py --seed S --out OUT [--count N] [--bin FOLDER]
       advise_bar.py --out OUT --judge REPORT.json
"""

import argparse
import json
import pathlib
import subprocess
import sys

from draw import Draw
from make_configs import write_list

TYPES = {"f16": 2, "bf16": 1}
TOKENS = dict.fromkeys([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], 1)

# As nm-compile makes layers of the weights of checkpoints.
PROGRAM = """#pattern = {encoding}
#x_map = affine_map<(m, n, k) -> (m, k)>
#w_map = affine_map<(m, n, k) -> (n, k)>
#y_map = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m, n)>

func.func @linear(%x: tensor<?x{k}x{type}>, %w: tensor<{n}x{k}x{type}, #pattern>)
    -> tensor<?x{n}x{type}> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x{k}x{type}>
  %empty = tensor.empty(%m) : tensor<?x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{n}xf32>)
      -> tensor<?x{n}xf32>
  %sum = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x{k}x{type}>, tensor<{n}x{k}x{type}, #pattern>)
      outs(%init : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  %y_empty = tensor.empty(%m) : tensor<?x{n}x{type}>
  %y = linalg.generic {{indexing_maps = [#row, #row],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%sum : tensor<?x{n}xf32>) outs(%y_empty : tensor<?x{n}x{type}>) {{
  ^bb0(%s: f32, %out: {type}):
    %rounded = arith.truncf %s : f32 to {type}
    linalg.yield %rounded : {type}
  }} -> tensor<?x{n}x{type}>
  return %y : tensor<?x{n}x{type}>
}}
"""


def draw(seed, count):
    """(type, inputs, outputs, tokens) of `count` layers."""
    source = Draw(seed)
    return [
        (source.pick(TYPES), source.size(), source.size(), source.pick(TOKENS))
        for _ in range(count)
    ]


def advise(tool, layer):
    type_, k, n, tokens = layer
    command = [str(tool), "--advise", "--shape", f"K={k},N={n}", "--type", type_]
    command += ["--tokens", str(tokens), "--gpu", "h200", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"advise_bar.py: {layer}: {done.stderr.strip()}")
    return json.loads(done.stdout)["patterns"]


def write(layers, out, tool):
    """The files, the list and the predictions."""
    out.mkdir(parents=True, exist_ok=True)
    lines, predicted = [], []
    for number, layer in enumerate(layers):
        type_, k, n, tokens = layer
        for i, row in enumerate(advise(tool, layer)):
            (time,) = row["times"]
            if "error" in time:
                continue
            entry = {"layer": number, "type": type_, "inputs": k, "outputs": n}
            entry |= {"tokens": tokens, "pattern": row["pattern"]}
            entry["predicted_us"] = time["predicted_us"]
            predicted.append(entry)
            if row["pattern"] == "dense":
                continue
            entry["file"] = f"layer{number}_{i}.mlir"
            entry["storage"] = row["storage"]
            entry["embed"] = "always" if "embedded" in row else "never"
            text = PROGRAM.format(encoding=row["encoding"], k=k, n=n, type=type_)
            (out / entry["file"]).write_text(text)
            lines.append(
                f"{entry['file']} --size {tokens} --tokens {tokens} --seed {number} "
                f"--storage {row['storage']} --embed {entry['embed']} --check "
                "--bench --bench-ms 60 --lock lock"
            )
    write_list(lines, out)
    (out / "predicted.json").write_text(json.dumps(predicted, indent=1) + "\n")
    print(f"{len(layers)} layers, {len(lines)} runs in {out}")


def judge(predicted, report):
    """{layer: (pattern ranked first, pattern measured fastest, times as long)}; of
    the dense product, the time of the vendor's library."""
    runs = [run for run in report["runs"] if "time" in run]
    runs = {pathlib.Path(run["file"]).name: run for run in runs}
    layers = {}
    for entry in predicted:
        layers.setdefault(entry["layer"], []).append(entry)
    verdicts = {}
    for number, entries in layers.items():
        mine = [runs[e["file"]] for e in entries if e.get("file") in runs]
        dense = [run["cublas_us"] for run in mine if "cublas_us" in run]
        measured = {}
        for i, entry in enumerate(entries):
            if entry.get("file") in runs:
                measured[i] = runs[entry["file"]]["time"]["median_us"]
            elif "file" not in entry and dense:
                measured[i] = min(dense)
        if not measured:
            continue
        first = min(measured, key=lambda i: entries[i]["predicted_us"])
        best = min(measured, key=measured.get)
        names = entries[first]["pattern"], entries[best]["pattern"]
        verdicts[number] = (*names, measured[first] / measured[best])
    return verdicts


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--judge", type=pathlib.Path, metavar="REPORT.json")
    arguments = parser.parse_args(argv)
    if not arguments.judge:
        layers = draw(arguments.seed, arguments.count)
        return write(layers, arguments.out, arguments.bin / "nm-compile")
    predicted = json.loads((arguments.out / "predicted.json").read_text())
    verdicts = judge(predicted, json.loads(arguments.judge.read_text()))
    for number, (first, best, ratio) in verdicts.items():
        print(f"layer {number}: {first} ranked first, {best} fastest, {ratio:.3f}")
    good = sum(ratio <= 1.05 for _, _, ratio in verdicts.values())
    print(f"{good} of {len(verdicts)} within 5 % of the fastest")


if __name__ == "__main__":
    sys.exit(main())
