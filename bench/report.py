#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of what run.py measured: for docs/Performance.md, or for one look.

Usage: report.py RESULT.json...
"""

import json
import pathlib
import statistics
import sys
from collections import defaultdict

import shapes
from layers import SPARSITIES, parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
RIVALS = "h200-rivals.json"
NONE = "No measurement is recorded yet."

# Lists of shapes, in the order of the tables.
GROUPS = {
    "4096 x 4096 x 4096": shapes.CUBES[:1],
    "8192 x 8192 x 8192": shapes.CUBES[1:],
    "large shapes": shapes.LARGE,
    "NM-SpMM's points": shapes.NMSPMM,
    "nmSPARSE's M9 to M32": shapes.NMSPARSE,
}


class Result:
    """One measured run."""

    def __init__(self, run, layer):
        self.run, self.layer = run, layer
        self.label = run.get("label")  # of a step of an ablation
        self.role = "step" if self.label else run.get("role", "choice")
        self.us = run["time"]["median_us"]
        self.speedup = run.get("speedup")
        self.predicted_us = run.get("predicted_us")
        self.schedule = (run.get("schedules") or [""])[0]

    @property
    def ideal(self):
        return 100 / (100 - float(self.layer.sparsity))

    @property
    def condensed_tflops(self):
        """Of the products with kept weights."""
        m, n, k = self.layer.shape
        return 2e-6 * m * n * k / self.ideal / self.us

    @property
    def kind(self):
        """What a row of a table shows."""
        layout = f"{self.layer.layout}-major"
        if self.layer.layout == "mixed" or (
            self.layer.layout == "feature" and self.layer.epilogue == "linear"
        ):
            layout = "feature-major in, token-major out"
        gelu = ", bias and GELU" if self.layer.epilogue == "gelu" else ""
        return self.layer.type, self.layer.length, layout + gelu


def read(path):
    """(report, results): what was measured, wrong and failed runs left out."""
    report = json.loads(pathlib.Path(path).read_text("utf-8"))
    results = []
    for run in report.get("runs", []) if isinstance(report, dict) else []:
        layer = parse(pathlib.Path(run.get("file", "")).stem)
        if layer and run.get("passed") and "time" in run:
            results.append(Result(run, layer))
    return report, results


def load(folder=RESULTS):
    """[(file name, report, results)] of the reports with times, oldest first."""
    found = [(path.name, *read(path)) for path in sorted(folder.glob("*.json"))]
    found = [entry for entry in found if any(r.speedup for r in entry[2])]
    # Older reports have a day alone, which sorts before its times.
    return sorted(found, key=lambda entry: (entry[1].get("date", ""), entry[0]))


def rivals(folder=RESULTS):
    path = folder / RIVALS
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def latest(reports):
    """The newest measured choice for each layer."""
    newest = {}
    for _, _, results in reports:
        for result in results:
            if result.role == "choice" and result.speedup:
                newest[result.layer] = result
    return list(newest.values())


def geomean(values):
    return statistics.geometric_mean(values)


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(header, rows):
    return "\n".join([row(header), "|---" * len(header) + "|", *map(row, rows)])


def conditions(name, report, results):
    """One sentence: where and how a report was made."""
    known = [run.run for run in results] or [{}]
    gpu = report.get("gpu") or known[0].get("gpu", "unknown GPU")
    parts = [gpu]
    if "driver" in report:
        parts.append(f"driver {report['driver']}")
    versions = {run["cublas"]["version"] for run in known if "cublas" in run}
    parts.append("cuBLAS " + ", ".join(str(version) for version in sorted(versions)))
    if report.get("cusparselt"):
        parts.append(f"cuSPARSELt {report['cusparselt'].get('cusparselt')}")
    if "sm_mhz" in report.get("clocks", {}):
        low, _, high = report["clocks"]["sm_mhz"]
        parts.append(f"SM clocks seen {low:.0f} to {high:.0f} MHz")
    parts.append(f"commit `{report.get('commit', 'unknown')}`")
    if any("sets" not in run for run in known):
        parts.append("one set of buffers")
    parts.append(f"`{report.get('command', 'unknown')}`")
    return f"`{name}`: " + "; ".join(parts) + "."


def cell(results):
    """Speedup, its range over several shapes, and the share of the ideal."""
    speedups = [result.speedup for result in results]
    share = geomean([result.speedup / result.ideal for result in results])
    text = f"{geomean(speedups):.2f}x"
    if len(results) > 1:
        text += f" ({min(speedups):.2f}-{max(speedups):.2f})"
    return f"{text}, {100 * share:.0f} %"


def speed(results):
    """A table for each group of shapes that was measured."""
    parts = []
    choices = [r for r in results if r.role == "choice" and r.speedup]
    for group, members in GROUPS.items():
        rows = defaultdict(lambda: defaultdict(list))
        for result in choices:
            if result.layer.shape in members:
                rows[result.kind][result.layer.sparsity].append(result)
        lines = []
        for kind, cells in sorted(rows.items()):
            count = len({r.layer.shape for found in cells.values() for r in found})
            # One or two shapes of a list do not stand for it.
            if count < min(3, len(members)):
                continue
            counts = [f"{count} of {len(members)}"] if len(members) > 1 else []
            shown = [cell(cells[s]) if s in cells else "" for s in SPARSITIES]
            lines.append([*kind, *counts, *shown])
        if lines:
            header = ["type", "L", "activations"]
            header += ["shapes"] if len(members) > 1 else []
            header += [f"{s} %" for s in SPARSITIES]
            parts.append(f"**{group}**\n\n" + table(header, lines))
    return "\n\n".join(parts)


def against_rivals(results, folder=RESULTS):
    """Our time against each rival's, both relative to cuBLAS beside it."""
    ours = {(r.layer.type, r.layer.sparsity, r.layer.shape): [] for r in results}
    for result in results:
        if result.role == "choice" and result.layer.layout != "token":
            key = (result.layer.type, result.layer.sparsity, result.layer.shape)
            ours[key].append(result)
    rows = []
    for name, entries in rivals(folder).get("rivals", {}).items():
        ratios = defaultdict(list)
        for entry in entries:
            key = (entry["type"], entry["sparsity"], tuple(entry["shape"]))
            same = [r for r in ours.get(key, []) if r.layer.epilogue != "gelu"]
            for result in same:
                theirs = entry["cublas_us"] / entry["us"]
                kind = (result.layer.type, result.layer.length, result.layer.sparsity)
                ratios[kind].append((result.speedup, theirs))
        for (type_, length, sparsity), pairs in sorted(ratios.items()):
            mine, other = (geomean(values) for values in zip(*pairs))
            rows.append(
                [name, type_, length, f"{sparsity} %", len(pairs)]
                + [f"{other:.2f}x", f"{mine:.2f}x", f"{mine / other:.2f}"]
            )
    header = ["library", "type", "our L", "sparsity", "shapes"]
    header += ["it over cuBLAS", "we over cuBLAS", "ratio"]
    return table(header, rows) if rows else ""


def beside_cusparselt(report, results):
    """cuSPARSELt of the same run."""
    rows = []
    ours = {
        (r.layer.type, r.layer.shape, r.layer.length): r
        for r in results
        if r.role == "choice" and r.layer.sparsity == "50" and r.layer.layout != "token"
    }
    for run in report.get("cusparselt", {}).get("runs", []):
        for (type_, shape, length), mine in sorted(ours.items()):
            if (type_, list(shape)) == (run["type"], run["shape"]) and "speedup" in run:
                rows.append(
                    [
                        "x".join(map(str, shape)),
                        type_,
                        f"{run['time']['median_us']:.1f}",
                    ]
                    + [f"{run['speedup']:.2f}x", length, f"{mine.us:.1f}"]
                    + [f"{mine.speedup:.2f}x", f"{mine.speedup / run['speedup']:.2f}"]
                )
    header = ["m x n x k", "type", "cuSPARSELt 2:4, us", "over cuBLAS"]
    header += ["our L", "ours, us", "over cuBLAS", "ratio"]
    return table(header, rows) if rows else ""


def model(results):
    """The choice against the best candidate, and predictions against times."""
    by_layer = defaultdict(list)
    for result in results:
        if result.role in ("choice", "candidate"):
            by_layer[result.layer].append(result)
    rows = []
    for type_ in sorted({layer.type for layer in by_layer}):
        losses, errors = [], []
        for layer, found in by_layer.items():
            chosen = [r for r in found if r.role == "choice"]
            if layer.type != type_ or not chosen:
                continue
            if len(found) > 1:
                losses.append(chosen[0].us / min(r.us for r in found))
            errors += [abs(r.predicted_us / r.us - 1) for r in chosen if r.predicted_us]
        if losses or errors:
            loss = ["", "", ""]
            if losses:
                loss = [len(losses), f"{geomean(losses):.3f}", f"{max(losses):.2f}"]
            error = f"{100 * statistics.median(errors):.0f} %" if errors else ""
            rows.append([type_, *loss, len(errors), error])
    header = ["type", "layers with candidates", "choice / best, geomean", "worst"]
    header += ["predictions", "median error"]
    return table(header, rows) if rows else ""


def ablation(results):
    """Times of the labelled schedules, a column for each sparsity."""
    rows = defaultdict(dict)
    for result in results:
        if result.label and result.label != shapes.MMA_LABEL:
            cells = rows[result.layer.shape, result.label]
            cells[result.layer.sparsity] = result
    lines = []
    for (shape, label), cells in rows.items():
        shown = [
            f"{cells[s].us:.0f} us, {cells[s].speedup:.2f}x" if s in cells else ""
            for s in SPARSITIES
        ]
        lines.append(["x".join(map(str, shape)), label, *shown])
    header = ["m x n x k", "schedule", *(f"{s} %" for s in SPARSITIES)]
    return table(header, lines) if lines else ""


def mma(results, folder=RESULTS):
    """The mma schedule under the ceiling of the instruction that it uses."""
    ceiling = rivals(folder).get("ceilings", {}).get("mma_tflops")
    rows = defaultdict(dict)
    for result in results:
        if result.label == shapes.MMA_LABEL and ceiling:
            share = 100 * result.condensed_tflops / ceiling
            rows[result.layer.shape, result.layer.length][result.layer.sparsity] = (
                f"{result.us:.1f} us, {result.condensed_tflops:.0f} TFLOP/s, "
                f"{share:.0f} %, {result.speedup:.2f}x"
            )
    lines = [
        ["x".join(map(str, shape)), length, *(cells.get(s, "") for s in SPARSITIES)]
        for (shape, length), cells in rows.items()
    ]
    header = ["m x n x k", "L", *(f"{s} %" for s in SPARSITIES)]
    caption = (
        "Time, speed of the products with kept weights, its share of what "
        f"`mma.sync` alone reached ({ceiling} TFLOP/s), and speed over cuBLAS, "
        "which uses `wgmma`.\n\n"
    )
    return caption + table(header, lines) if lines else ""


def every_shape(results):
    """All choices, a line for each shape."""
    rows = defaultdict(dict)
    for result in results:
        if result.role == "choice" and result.speedup:
            rows[result.layer.shape, result.kind][result.layer.sparsity] = result
    lines = []
    for (shape, kind), cells in sorted(rows.items()):
        shown = [
            f"{cells[s].us:.1f} us, {cells[s].speedup:.2f}x" if s in cells else ""
            for s in SPARSITIES
        ]
        dense = statistics.median(r.run["cublas_us"] for r in cells.values())
        lines.append(["x".join(map(str, shape)), *kind, f"{dense:.1f}", *shown])
    header = ["m x n x k", "type", "L", "activations", "cuBLAS, us"]
    return table(header + [f"{s} %" for s in SPARSITIES], lines) if lines else ""


def sections(report, results, folder=RESULTS):
    """{title: table} of one report, empty ones left out."""
    found = {
        "Speed over cuBLAS": speed(results),
        "Beside cuSPARSELt": beside_cusparselt(report, results),
        "Other libraries, measured apart": against_rivals(results, folder),
        "The model": model(results),
        "Ablation": ablation(results),
        "The mma schedule": mma(results, folder),
        "Every shape": every_shape(results),
    }
    return {title: text for title, text in found.items() if text}


def page(folder=RESULTS):
    """The part of docs/Performance.md that is made of tables."""
    parts = []
    for name, report, results in reversed(load(folder)):
        parts += [f"## {name}", conditions(name, report, results)]
        for title, text in sections(report, results, folder).items():
            if title == "Every shape":
                text = f"<details><summary>all shapes</summary>\n\n{text}\n\n</details>"
            else:
                text = f"### {title}\n\n{text}"
            parts.append(text)
    return "\n\n".join(parts) or NONE


def main():
    for path in sys.argv[1:]:
        report, results = read(path)
        print(conditions(pathlib.Path(path).name, report, results) + "\n")
        for title, text in sections(report, results).items():
            print(f"{title}\n\n{text}\n")


if __name__ == "__main__":
    main()
