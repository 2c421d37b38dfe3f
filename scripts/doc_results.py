# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the recorded measurements, for update_docs.py.

Reads the reports of `nm-run --json`, single ones and batches, and of
bench/run.py, in one folder. bench/layers.py names its configurations TYPE_sSPARSITY_
LLENGTH_LAYOUT_TOKENSxOUTPUTSxCONTRACTION_EPILOGUE; other inputs are listed by
file name.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
from layers import NAME, SPARSITIES  # noqa: E402

HEADLINE = "4096x4096x4096"
# The rows of it that README.md shows: type, vector length, layout.
SUMMARY = [("f16", 128, "feature"), ("f16", 128, "token"), ("f32", 32, "token")]
NONE = "No measurement is recorded yet."


def load(folder):
    """[(file name, header, runs)] of every report in `folder`."""
    reports = []
    for path in sorted(Path(folder).glob("*.json")):
        report = json.loads(path.read_text("utf-8"))
        if not isinstance(report, dict):
            continue
        if "runs" in report:
            runs = [run for run in report["runs"] if isinstance(run, dict)]
        elif "file" in report:
            runs = [report]
        else:
            continue
        reports.append((path.name, report, runs))
    return reports


def age(name, header):
    """Sorts reports, the newest last. Older reports of one day have no time, and
    come in the order of their names, before those that have one."""
    return header.get("date", ""), name


def configuration(run):
    """The parts of the configuration's name, or None."""
    file = run.get("file") or (run.get("arguments", "").split() or [""])[0]
    match = NAME.match(Path(file).stem)
    return match.groupdict() if match else None


def microseconds(run):
    return run.get("time", {}).get("median_us")


def conditions(name, header, runs):
    """One sentence: where and how a report was made."""
    known = [*(run for run in runs if run.get("chip")), {}][0]
    gpu = header.get("gpu") or known.get("gpu") or known.get("chip", "unknown GPU")
    driver = header.get("driver") or known.get("driver")
    parts = [f"{gpu}" + (f", driver {driver}" if driver else "")]
    cublas = {run["cublas"]["version"] for run in runs if "cublas" in run}
    if cublas:
        parts.append("cuBLAS " + ", ".join(str(v) for v in sorted(cublas)))
    parts.append(f"commit `{header.get('commit', 'unknown')}`")
    command = header.get("command", "")
    # Only the options: where the list lay says nothing.
    options = re.findall(r"--(?:jobs|timeout|bench|check)(?: \d+)?", command)
    if options:
        parts.append(
            f"`nm-run {'--batch LIST ' * ('runs' in header)}{' '.join(options)}`"
        )
    return f"`{name}`: " + "; ".join(parts) + "."


def correctness(runs):
    """One sentence on what was checked, and a list of what failed."""
    checked = [run for run in runs if "checks" in run]
    failed = [run for run in runs if run.get("passed") is False or "error" in run]
    if not checked and not failed:
        return ""
    worst = {}
    for run in checked:
        for check in run["checks"]:
            error = check["relative_error"]
            error = float("inf") if isinstance(error, str) else error
            worst[check["kind"]] = max(worst.get(check["kind"], 0.0), error)
    text = f"{len(checked)} runs compared with the float64 product, "
    text += f"{sum(run.get('passed') is True for run in checked)} within tolerance; "
    text += "largest relative Frobenius error by type of the result: "
    text += ", ".join(f"{kind} {worst[kind]:.1e}" for kind in sorted(worst)) + "."
    if failed:
        text += f" {len(failed)} failed or could not run:\n"
        for run in failed:
            name = Path(run.get("file") or run.get("arguments", "?").split()[0]).name
            text += f"\n* `{name}`: {run.get('error', 'outside the tolerance')}"
    return text


# The descriptions of layouts, by the layout in a file's name.
ACTIVATIONS = {
    "feature": "feature-major",
    "token": "token-major",
    "mixed": "feature-major in, token-major out",
}


def speed_rows(runs):
    """{(type, length, layout): {sparsity: run}} of the runs beside cuBLAS."""
    rows = {}
    for run in runs:
        parts = configuration(run)
        if not parts or "speedup" not in run:
            continue
        key = (parts["type"], int(parts["length"]), parts["layout"])
        rows.setdefault(key, {})[float(parts["sparsity"])] = run
    return rows


def speed_table(rows, heading="{} % sparse".format, sources=()):
    """Speed over cuBLAS: a row for each type, length and layout, a column for
    each sparsity, and one for the report of each row where `sources` has them."""
    if not rows:
        return ""
    order = sorted({sparsity for cells in rows.values() for sparsity in cells})
    header = ["type", "L", "activations", "cuBLAS, us"]
    header += [heading(f"{c:g}") for c in order] + ["report"] * bool(sources)
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for key, cells in sorted(rows.items()):
        type_, length, layout = key
        dense = sorted(run["cublas_us"] for run in cells.values())
        row = [type_, str(length), ACTIVATIONS[layout], f"{dense[len(dense) // 2]:.0f}"]
        row += [
            f"{microseconds(cells[c]):.0f} us, {cells[c]['speedup']:.2f}x"
            if c in cells
            else ""
            for c in order
        ]
        row += [sources[key]] if sources else []
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def other_table(runs):
    rows = [run for run in runs if not configuration(run) and microseconds(run)]
    if not rows:
        return ""
    lines = [
        "| input | tokens | time, us | TFLOP/s (dense) | cuBLAS, us | speed |",
        "|---|---|---|---|---|---|",
    ]
    for run in rows:
        dense = f"{run['cublas_us']:.0f}" if "cublas_us" in run else ""
        ratio = f"{run['speedup']:.2f}x" if "speedup" in run else ""
        lines.append(
            f"| {Path(run['file']).name} | {run['size']} | {microseconds(run):.1f} | "
            f"{run['tflops_dense_equivalent']:.0f} | {dense} | {ratio} |"
        )
    return "\n".join(lines)


def headline(folder, only=None):
    """The bare products of the headline shape, each once, or those of `only`: of
    bench/run.py, which measures the model's choices, where there are any. Of
    reports with the same product the newest counts that has most of its
    sparsities; docs/Performance.md has the rest."""
    found = []
    reports = load(folder)
    for name, header, runs in [r for r in reports if "suites" in r[1]] or reports:
        rows = speed_rows(
            run
            for run in runs
            if (configuration(run) or {}).get("shape") == HEADLINE
            and configuration(run)["epilogue"] in ("plain", "linear", "product")
            and run.get("role", "choice") == "choice"
            and "label" not in run
        )
        found.append((age(name, header), rows, name, conditions(name, header, runs)))
    table, sources, used = {}, {}, {}
    for _, rows, name, text in sorted(found, key=lambda f: f[0]):
        for key, cells in rows.items():
            if only is not None and key not in only:
                continue
            if len(cells) >= len(table.get(key, ())):
                table[key], sources[key] = cells, Path(name).stem
                used[name] = text
    if not table:
        return NONE

    def heading(percent):
        return f"{percent} % sparse, {SPARSITIES[percent]}"

    return (
        speed_table(table, heading, sources)
        + "\n\n"
        + "\n".join(
            f"* {used[name]}"
            for name in sorted(used)
            if Path(name).stem in sources.values()
        )
    )


def everything(folder):
    parts = []
    for name, header, runs in load(folder):
        if "suites" in header:  # of bench/run.py, for docs/Performance.md
            continue
        section = [f"## {name}", conditions(name, header, runs)]
        section.append(correctness(runs))
        shapes = Counter()
        for run in runs:
            found = configuration(run)
            if found and "speedup" in run:
                shapes[found["shape"], found["epilogue"]] += 1
        for shape, epilogue in shapes:
            section.append(f"### {shape}, {epilogue}")
            section.append(
                speed_table(
                    speed_rows(
                        run
                        for run in runs
                        if (configuration(run) or {}).get("shape") == shape
                        and configuration(run)["epilogue"] == epilogue
                    )
                )
            )
        section.append(other_table(runs))
        parts.append("\n\n".join(part for part in section if part))
    return "\n\n".join(parts) if parts else NONE


def agreement(report):
    """How the emulator's results compare with a GPU's."""
    results = [result for row in report["kernels"] for result in row["results"]]
    equal = sum(result["bit_equal"] == 1.0 for result in results)
    worst = max(result.get("relative_difference", 0.0) for result in results)
    ulps = max(result.get("largest_ulps", 0) for result in results)
    return (
        f"{report['agreeing']} of {len(report['kernels'])} kernels agree with an "
        f"{report['gpu']} on the same inputs (commit `{report['commit']}`): "
        f"{equal} of {len(results)} results are equal in every bit, f32 results "
        f"differ by {worst:.1g} of their norm at most, f16 and bf16 results by "
        f"{ulps} units in the last place."
    )


def mutants(report):
    """Which removals of synchronization the emulator finds."""
    lines = ["| Removed | Mutants | Found |", "|---|---|---|"]
    for operation, row in report["by_operation"].items():
        lines.append(f"| `{operation}` | {row['mutants']} | {row['found']} |")
    lines.append(f"| all | {report['mutants']} | {report['found']} |")
    text = "\n".join(lines)
    survivors = defaultdict(lambda: defaultdict(list))
    for row in report["not_found"]:
        survivors[row["reason"]][row["operation"]].append(row["kernel"])
    text += (
        "\n\n| Not found, because | Without | Mutants | Kernels |\n|---|---|---|---|"
    )
    for reason, operations in survivors.items():
        without = ", ".join(
            f"`{operation}` ({len(kernels)})"
            for operation, kernels in operations.items()
        )
        kernels = [name for names in operations.values() for name in names]
        text += f"\n| {reason} | {without} | {len(kernels)} | {len(set(kernels))} |"
    excuses = Counter(row["reason"] for row in report["no_mistakes"])
    for reason, count in sorted(excuses.items()):
        text += f"\n\nNo mistake to remove ({reason}): {count} more."
    return text


def emulator(folder):
    parts = []
    for name, describe in (
        ("h200-emulator.json", agreement),
        ("emulator-mutants.json", mutants),
    ):
        path = Path(folder) / name
        if path.exists():
            parts.append(describe(json.loads(path.read_text("utf-8"))))
    return "\n\n".join(parts) if parts else NONE
