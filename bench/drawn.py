# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of layers drawn at random, one entry a layer: what is kept of the report of
a list of bench/draw.py."""

import json
import pathlib

from layers import parse

# What a kernel before the product does, by a part of its name.
BEFORE = {"_transpose": "transposition", "_align": "row copy"}


def before_of(run):
    """What the kernels before the product do, of a report that names kernels."""
    kernels = run.get("kernels", [])
    return next(
        (BEFORE[p] for p in BEFORE for kernel in kernels if p in kernel),
        "" if kernels else None,
    )


def rounded(us):
    return float(f"{us:.5g}")


def condense(report, note):
    """A report of nm-run --batch, without what no tool reads."""
    layers = {}
    for run in report["runs"]:
        name = pathlib.Path(run["file"]).stem
        if not parse(name) or "time" not in run or not run.get("schedules"):
            continue
        layer = layers.setdefault(name, {"layer": name, "schedules": []})
        if "cublas_us" in run:
            layer.setdefault("cublas_us", []).append(run["cublas_us"])
        entry = {
            "schedule": run["schedules"][0],
            "us": rounded(run["time"]["median_us"]),
        }
        if before_of(run):
            entry["before"] = before_of(run)
        if run.get("overlapping_launches"):
            entry["overlaps"] = 1
        layer["schedules"].append(entry)
    for layer in layers.values():
        times = sorted(layer.get("cublas_us", []))
        if times:
            layer["cublas_us"] = rounded(times[len(times) // 2])
    head = {"commit": report["commit"], "gpu": report["runs"][0]["gpu"], "note": note}
    return {**head, "drawn": list(layers.values())}


def runs(report):
    """The entries of a condensed report, as runs of nm-run."""
    for layer in report.get("drawn", []):
        for entry in layer["schedules"]:
            run = {
                "file": f"{layer['layer']}.mlir",
                "drawn": True,
                "passed": True,
                "time": {"median_us": entry["us"]},
                "schedules": [entry["schedule"]],
                "before": entry.get("before", ""),
                "overlapping_launches": entry.get("overlaps", 0),
            }
            if "cublas_us" in layer:
                run["cublas_us"] = layer["cublas_us"]
            yield run


def write(report, path, note):
    condensed = condense(report, note)
    head = {key: value for key, value in condensed.items() if key != "drawn"}
    lines = ",\n".join(f"  {json.dumps(layer)}" for layer in condensed["drawn"])
    text = json.dumps(head, indent=1)[:-2] + f',\n "drawn": [\n{lines}\n ]\n}}\n'
    path.write_text(text, "utf-8")
