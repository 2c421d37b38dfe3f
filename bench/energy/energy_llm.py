#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the linear layers of a Llama-3-8B block take in joules, dense and sparse.

`make` writes one MLIR file for each layer and pattern, f16 with token-major
activations, and lists for `nm-run --batch`, which runs in OUT. `dense.txt` has the
first pattern beside the dense product by cuBLAS, and `list.txt` the others. Run both
at a time: they take turns on the GPU by the lock that they share, and have all layers
of one number of tokens before the next. `check.txt` compares results with float64.

    nm-run --batch dense.txt --json dense.json &
    NM_SPARSE_CUBLAS=none nm-run --batch list.txt --jobs 4 --json list.json

`condense` makes a result file of the reports.

Usage: energy_llm.py make --out OUT
       energy_llm.py condense REPORT.json... --out RESULT.json
"""

import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from layers import Layer

# {name: (outputs, contraction)}; q, k and v are one product. `up` is as `gate`.
LAYERS = {
    "qkv": (6144, 4096),
    "o": (4096, 4096),
    "gate": (14336, 4096),
    "down": (4096, 14336),
}
# As encodings spell them, with the percent of zeros.
PATTERNS = {
    "2:4": 50,
    "8:16": 50,
    "16:32, block = [1, 128]": 50,
    "8:32, block = [1, 128]": 75,
    "[4:8, block = [1, 64]], [2:4]": 75,
}
DENSE = "dense"
# Those that matter most come first.
TOKENS = (1, 2048, 16, 256)
# In loops of less than a second, products at the limit of power have not settled.
FLAGS = "--bench --bench-ms 20 --lock lock --energy --energy-seconds 1"
FLAGS += " --energy-repeats 1"
KEPT = ("mj", "us", "watts", "sm_mhz", "celsius")


def make_text(name, pattern):
    """The function of a layer whose weight has this pattern."""
    text = Layer("f16", "50", 1, "token", (1, *LAYERS[name])).text()
    encoding = f"#w = #nm_sparse.encoding<{pattern}>"
    return re.sub(r"^#w = .*$", lambda _: encoding, text, count=1, flags=re.M)


def make(options):
    options.out.mkdir(parents=True, exist_ok=True)
    lists = {"dense": [], "list": [], "check": []}
    for tokens in TOKENS:
        for name in LAYERS:
            for number, pattern in enumerate(PATTERNS):
                path = f"{name}-{number}.mlir"
                (options.out / path).write_text(make_text(name, pattern), "utf-8")
                run = f"{path} --size {tokens} --seed {tokens}"
                lists["list" if number else "dense"].append(f"{run} {FLAGS}")
                lists["check"].append(f"{run} --check")
    for name, lines in lists.items():
        (options.out / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    print(", ".join(f"{len(lines)} runs of {name}" for name, lines in lists.items()))


def condense(options):
    reports = [json.loads(path.read_text("utf-8")) for path in options.reports]
    runs = [run for report in reports for run in report["runs"]]
    patterns, products = list(PATTERNS), []
    for run in runs:
        if "error" in run or not run.get("passed", True):
            raise SystemExit(f"{run['arguments']} failed")
        if "energy" not in run:
            continue
        name, number = pathlib.Path(run["file"]).stem.split("-")
        for kind, pattern in (("ours", patterns[int(number)]), ("cublas", DENSE)):
            if kind in run["energy"]:
                measured = run["energy"][kind]
                products.append(
                    {
                        "layer": name,
                        "pattern": pattern,
                        "tokens": run["size"],
                        **{key: float(f"{measured[key]:.6g}") for key in KEPT},
                    }
                )
    checked = sum("checks" in run for run in runs)
    result = {"gpu": runs[0]["gpu"], "commit": reports[0]["commit"]}
    result.update(checked=checked, products=products)
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("make")
    first.set_defaults(do=make)
    second = commands.add_parser("condense")
    second.add_argument("reports", type=pathlib.Path, nargs="+")
    second.set_defaults(do=condense)
    for command in (first, second):
        command.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
