# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layers that nobody chose take, for docs/Performance.md: those that
bench/draw.py drew, and functions for any number of tokens at drawn numbers.

The second are kept in a file of their own, which this makes of the report of a list
whose inputs have `any` for their tokens in their names:

Usage: random_layers.py REPORT --record OUT --note TEXT
"""

import argparse
import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import drawn
import report
from layers import parse

DRAWN = report.RESULTS / "h200-random-judge.json"
ANY = report.RESULTS / "h200-any-tokens.json"
# Numbers of tokens that are told apart, with the first of the next group.
GROUPS = {"1 to 7": 8, "8 to 63": 64, "64 to 1023": 1024, "1024 and more": 1 << 60}


def group_of(tokens):
    return next(name for name, end in GROUPS.items() if tokens < end)


def chosen(path=DRAWN):
    """[(layer, speed over cuBLAS)]: what the model chose, of each drawn layer."""
    found = {}
    for run in drawn.runs(json.loads(path.read_text("utf-8"))):
        layer = parse(pathlib.Path(run["file"]).stem)
        if layer not in found and "cublas_us" in run:
            found[layer] = run["cublas_us"] / run["time"]["median_us"]
    return list(found.items())


def cell(values):
    """Of several speeds the geometric mean, and the least and the most of them."""
    if not values:
        return ""
    mean, low, high = report.geomean(values), min(values), max(values)
    return f"{mean:.2f}x ({low:.2f}-{high:.2f}, {len(values)})"


def by_tokens(speeds, heading):
    """A table with a row for each kind and a column for each group of tokens, of
    {kind: [(tokens, speed)]}."""
    rows = []
    for kind, found in sorted(speeds.items()):
        cells = [[s for t, s in found if group_of(t) == name] for name in GROUPS]
        rows.append([*kind, *map(cell, cells)])
    return report.table([*heading, *(f"{name} tokens" for name in GROUPS)], rows)


def about(path, layers):
    data = json.loads(path.read_text("utf-8"))
    return f"`{path.name}`: {data['gpu']}, {layers}; commit `{data['commit']}`."


def layers_page(path=DRAWN):
    """The table of drawn layers."""
    if not path.exists():
        return report.NONE
    found = chosen(path)
    speeds = collections.defaultdict(list)
    for layer, speed in found:
        bits = "f32" if layer.type == "f32" else "f16, bf16"
        key = (bits, f"{layer.sparsity} %", layer.length)
        speeds[key].append((layer.shape[0], speed))
    faster = sum(speed > 1 for _, speed in found)
    text = f"{len(found)} layers, {faster} of them faster than cuBLAS"
    return by_tokens(speeds, ["type", "sparse", "L"]) + "\n\n" + about(path, text)


def functions(path=ANY):
    """[(layer, [[tokens, us, us of cuBLAS]])] of functions for any number."""
    data = json.loads(path.read_text("utf-8"))
    return [
        (parse(entry["function"].replace("_any", "_1")), entry["times"])
        for entry in data["functions"]
    ]


def tokens_page(path=ANY):
    """The table of functions for any number of tokens."""
    if not path.exists():
        return report.NONE
    speeds = collections.defaultdict(list)
    count = 0
    for layer, times in functions(path):
        layout = "token-major" if layer.layout == "token" else "feature-major"
        for tokens, us, dense in times:
            # Rows of a caller that are not aligned are copied first.
            odd = ", odd rows" if layout[0] == "f" and tokens % 8 else ""
            key = (f"{layer.sparsity} %", layer.length, layout + odd)
            speeds[key].append((tokens, dense / us))
            count += 1
    table = by_tokens(speeds, ["sparse", "L", "activations"])
    text = f"{len(functions(path))} functions, {count} runs"
    return table + "\n\n" + about(path, text)


PAGES = {"layers": layers_page, "tokens": tokens_page}


def record(path, out, note):
    """Condenses the report of a list of functions for any number of tokens."""
    data = json.loads(path.read_text("utf-8"))
    if not data.get("runs"):
        raise SystemExit(f"random_layers.py: {path} has no runs of nm-run --batch")
    times = collections.defaultdict(list)
    for run in data["runs"]:
        words = run["arguments"].split()
        tokens = int(re.search(r"--size (?:m=)?(\d+)", run["arguments"])[1])
        # Where there are many, not every run compares results.
        if run.get("passed", "error" not in run) and "cublas_us" in run:
            pair = [run["time"]["median_us"], run["cublas_us"]]
            name = pathlib.Path(words[0]).stem
            times[name].append([tokens, *map(drawn.rounded, pair)])
    head = {"commit": data["commit"], "gpu": data["runs"][0]["gpu"], "note": note}
    lines = ",\n".join(
        f"  {json.dumps({'function': name, 'times': sorted(times[name])})}"
        for name in sorted(times)
    )
    text = json.dumps(head, indent=1)[:-2] + f',\n "functions": [\n{lines}\n ]\n}}\n'
    out.write_text(text, "utf-8")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path, required=True)
    parser.add_argument("--note", default="")
    arguments = parser.parse_args(argv)
    record(arguments.report, arguments.record, arguments.note)


if __name__ == "__main__":
    sys.exit(main())
