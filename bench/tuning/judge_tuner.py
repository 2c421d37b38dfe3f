#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges nm-tune on a GPU by layers drawn at random: what it gains over the model's
choices and over dense products, how long it takes, and how far its winners are from the
best of a wide search for the same problems.

Usage: judge_tuner.py --tool NM-TUNE --seed S --layers N --out OUT.json
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import draw  # noqa: E402

# The first is few tokens, two are between few and many.
RANGES = ((1, 32), (33, 1023), (33, 1023), (1024, 4096))
SEARCHES = {
    "usual": [],
    "wide": ["--candidates", "40", "--neighbours", "12"],
}
SUMMARY = re.compile(r"([\d.]+)x of the model's choices")
PROBLEM = "encoding storage type x y read_bytes written_bytes inputs outputs tokens"


def draw_problems(seed, count):
    source = draw.Draw(f"{seed}, tokens")
    tokens = sorted({source.log_uniform(*limits) for limits in RANGES})
    domains = ["2:4", "wide panels", "elements", "f32 panels", "v:n:m"]
    each = -(-count // len(domains))
    layers = [
        layer
        for domain in domains
        for layer in draw.draw(f"{seed}, {domain}", each, domain)
    ]
    return layers[:count], tokens


def search(tool, folder, layers, tokens, name, flags):
    """The entries of a search, by their problems, and what it said of itself."""
    database = folder / f"{name}.jsonl"
    files = [str(layer.write(folder)) for layer in layers]
    command = [*tool.split(), *files, "--tokens", ",".join(map(str, tokens))]
    command += ["--database", str(database), *flags]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    lines = done.stdout.splitlines()
    found = {}
    for line in database.read_text("utf-8").splitlines():
        entry = json.loads(line)
        found[tuple(entry[key] for key in PROBLEM.split())] = entry
    model = SUMMARY.search(lines[-1]) if lines else None
    said = {
        "status": done.returncode,
        "seconds": round(seconds, 1),
        "problems": len(found),
        "over_model": float(model[1]) if model else None,
        "last_line": lines[-1] if lines else "",
        "faults": [line for line in lines if re.match(r"    \w", line)],
        "warnings": done.stderr.splitlines(),
    }
    return found, said


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summarize(records):
    found = {}
    for low, high in ((1, 32), (33, 1023), (1024, 4096)):
        own = [one for one in records if low <= one["tokens"] <= high]
        if not own:
            continue
        lost = [one["us"] / one["wide_us"] for one in own]
        dense = [one["dense_us"] / one["us"] for one in own if one["dense_us"]]
        found[f"{low} to {high} tokens"] = {
            "problems": len(own),
            "over_dense": geomean(dense),
            "usual / wide": geomean(lost),
            "within 1 %": sum(one <= 1.01 for one in lost) / len(lost),
            "within 3 %": sum(one <= 1.03 for one in lost) / len(lost),
        }
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, help="the words that call nm-tune")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--sample-ms", type=int, default=400)
    arguments = parser.parse_args(argv)
    if os.path.sep in arguments.tool.split()[0]:
        first, *rest = arguments.tool.split()
        arguments.tool = " ".join([os.path.abspath(first), *rest])
    layers, tokens = draw_problems(arguments.seed, arguments.layers)
    entries, said = {}, {}
    with tempfile.TemporaryDirectory() as name:
        for search_name, flags in SEARCHES.items():
            flags = [*flags, "--sample-ms", str(arguments.sample_ms)]
            entries[search_name], said[search_name] = search(
                arguments.tool, pathlib.Path(name), layers, tokens, search_name, flags
            )
            print(search_name, said[search_name]["last_line"], flush=True)
    records = [
        {
            **dict(zip(PROBLEM.split(), problem)),
            "us": one["us"],
            "dense_us": one["dense_us"],
            "spread": one["spread"],
            "schedule": one["schedule"],
            "wide_us": entries["wide"][problem]["us"],
            "wide_schedule": entries["wide"][problem]["schedule"],
        }
        for problem, one in entries["usual"].items()
        if problem in entries["wide"]
    ]
    result = {
        "seed": arguments.seed,
        "layers": [layer.name for layer in layers],
        "tokens": tokens,
        "searches": said,
        "summary": summarize(records),
        "records": records,
    }
    text = json.dumps(result, indent=1)
    arguments.out.write_text(text + "\n", "utf-8")
    return 0 if records else 1


if __name__ == "__main__":
    sys.exit(main())
