#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures suites of bench/shapes.py on a GPU: our kernels against cuBLAS, and
cuSPARSELt where PyTorch has it.

Layers are compiled and checked by several processes at a time, on all cores; a
process that takes times holds a lock, and has the GPU to itself. Each output is
compared with the float64 product first, and a wrong one is not timed. nm-run
alternates our kernel with cuBLAS; cuSPARSELt runs in a process of its own, which
takes turns with nm-run and times cuBLAS itself.

Usage: run.py --tool FILE --out RESULT.json --suite NAME... [options]
"""

import argparse
import concurrent.futures
import json
import lzma
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import clocks
import shapes

NOTES = [
    "ours and cuBLAS: one process, alternating replays of CUDA graphs, dense "
    "normal random weights for cuBLAS",
    "cuSPARSELt and its cuBLAS: another process, alternating replays; the two "
    "processes take turns, one configuration each",
]


def arguments_of(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", type=pathlib.Path, required=True, help="or FILE.xz")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--suite", nargs="+", choices=shapes.SUITES, required=True)
    parser.add_argument(
        "--only", default="", help="patterns of parts of names: f16,s50,4096x*"
    )
    parser.add_argument("--limit", type=int, help="the first N cases alone")
    parser.add_argument("--schedule", help="forces a schedule on every case")
    parser.add_argument("--candidates", type=int, default=1, metavar="K")
    parser.add_argument("--budget-ms", type=int, default=50)
    parser.add_argument("--deadline", type=int, default=540, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--no-cusparselt", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the inputs")
    parser.add_argument(
        "--list-only",
        action="store_true",
        help="write the inputs and list.txt to the folder of --keep, and stop",
    )
    return parser.parse_args(argv)


def unpacked(tool, folder):
    """The tool itself, where it is given as FILE.xz."""
    if tool.suffix != ".xz":
        return tool.resolve()
    target = folder / tool.stem
    with lzma.open(tool) as packed, open(target, "wb") as file:
        shutil.copyfileobj(packed, file)
    target.chmod(0o755)
    return target


def command_of(tool, name):
    """`tool` is the executable with all tools, or the folder that has each."""
    return [str(tool / name)] if tool.is_dir() else [str(tool), name]


def rank(tool, folder, layer, count):
    """The model's best schedules of each family of kernels, its choice first:
    [{"schedule", "predicted_us", "bound"}]."""
    command = command_of(tool, "nm-compile")
    command += [str(folder / f"{layer.name}.mlir"), "--candidates", str(count)]
    command += ["--tokens", str(layer.shape[0])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"run.py: {layer.name}: {done.stderr.strip()}", file=sys.stderr)
        return []
    kept = ("schedule", "predicted_us", "bound")
    candidates = json.loads(done.stdout)[0]["candidates"]
    return [{key: candidate[key] for key in kept} for candidate in candidates]


def plan(cases, ranked, schedule=None):
    """[(case, what is known of the run before it is made)]."""
    entries = []
    for case in cases:
        forced = schedule or case.schedule
        best = ranked.get(case.layer, [])
        known = {"role": "forced" if forced else "choice"}
        if case.label:
            known["label"] = case.label
        if forced:
            entries.append((case, {**known, "schedule": forced}))
            continue
        if best:
            known["predicted_us"] = best[0]["predicted_us"]
            known["bound"] = best[0]["bound"]
        entries.append((case, known))
        for other in best[1:]:
            entries.append((case, {**other, "role": "candidate"}))
    return entries


def write_list(entries, folder, lock, budget_ms):
    lines = []
    for number, (case, known) in enumerate(entries):
        words = [str(folder / f"{case.layer.name}.mlir"), "--size"]
        words += [str(case.layer.shape[0]), "--seed", str(number), "--check"]
        words += ["--bench", "--bench-ms", str(budget_ms), "--lock", str(lock)]
        if "schedule" in known:
            words += ["--schedule", known["schedule"]]
        lines.append(shlex.join(words))
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    return lines


def merge(entries, lines, report, watch):
    """The runs that were made, with what was known before."""
    known = dict(zip(lines, entries))
    runs = []
    for run in report["runs"]:
        case, before = known[run.pop("arguments")]
        before = {key: before[key] for key in before if key != "schedule"}
        run = {"file": f"{case.layer.name}.mlir", **before, **_without_file(run)}
        if "measured_at" in run:
            run["clocks"] = watch.between(*run.pop("measured_at"))
        runs.append(run)
    return runs


def _without_file(run):
    dropped = ("file", "entry", "device", "gpu", "chip")
    return {key: run[key] for key in run if key not in dropped}


def rounded(value):
    """Five digits are more than a measurement has."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def save(path, header, runs, key="runs"):
    """One line for each run, so that reports can be compared."""
    head = json.dumps(header, indent=1)[:-2]
    body = ",\n  ".join(json.dumps(rounded(run), sort_keys=True) for run in runs)
    path.write_text(f'{head},\n "{key}": [\n  {body}\n ]\n}}\n')


def two_to_four(cases):
    """What cuSPARSELt can do of `cases`."""
    problems = {
        (case.layer.type, case.layer.shape): None
        for case in cases
        if case.layer.type in ("f16", "bf16") and case.layer.sparsity == "50"
    }
    return [{"type": type_, "shape": shape} for type_, shape in problems]


def measure(arguments, cases, folder):
    layers = list(dict.fromkeys(case.layer for case in cases))
    for layer in layers:
        layer.write(folder)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        ranked = pool.map(
            lambda layer: rank(arguments.tool, folder, layer, arguments.candidates),
            layers,
        )
        ranked = dict(zip(layers, ranked))
    entries = plan(cases, ranked, arguments.schedule)
    if arguments.list_only:  # The kernels may be compiled apart.
        for case, known in entries:
            if known["role"] == "choice" and ranked[case.layer]:
                known["schedule"] = ranked[case.layer][0]["schedule"]
    lock = folder / "lock"
    lines = write_list(entries, folder, lock, arguments.budget_ms)
    if arguments.list_only:
        return None
    command = command_of(arguments.tool, "nm-run")
    command += ["--batch", str(folder / "list.txt"), "--jobs", str(arguments.jobs)]
    command += ["--timeout", "600", "--deadline", str(arguments.deadline)]
    command += ["--json", str(folder / "nm-run.json")]
    threads = max(1, (os.cpu_count() or 1) // arguments.jobs)
    environment = {**os.environ, "NM_SPARSE_THREADS": str(2 * threads)}

    rival, problems = None, two_to_four(cases)
    if problems and not arguments.no_cusparselt:
        (folder / "problems.json").write_text(json.dumps(problems))
        script = pathlib.Path(__file__).parent / "cusparselt.py"
        rival = [sys.executable, str(script), str(folder / "problems.json")]
        rival += [str(folder / "cusparselt.json"), "--lock", str(lock)]
        rival += ["--budget-ms", str(arguments.budget_ms)]
        rival += ["--deadline", str(arguments.deadline)]

    with clocks.Watch() as watch:
        beside = subprocess.Popen(rival) if rival else None
        # What it prints is in its report, too.
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        if beside:
            beside.wait()
    report = json.loads((folder / "nm-run.json").read_text())
    runs = merge(entries, lines, report, watch)
    other = {}
    if (folder / "cusparselt.json").exists():
        other = json.loads((folder / "cusparselt.json").read_text())
        for run in other["runs"]:
            if "measured_at" in run:
                run["clocks"] = watch.between(*run.pop("measured_at"))
    return report, runs, other, watch


def main(argv=None):
    arguments = arguments_of(argv)
    cases = shapes.select(arguments.suite, arguments.only)[: arguments.limit]
    before = clocks.query(["name", "driver_version"]), clocks.sample()
    started = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        arguments.tool = unpacked(arguments.tool, folder)
        measured = measure(arguments, cases, folder.resolve())
    if not measured:
        print(f"{len(cases)} cases in {folder}/list.txt")
        return 0
    report, runs, other, watch = measured
    header = {
        "commit": report["commit"],
        "command": "bench/run.py " + shlex.join(sys.argv[1:] if argv is None else argv),
        "gpu": before[0].get("name", "unknown"),
        "driver": before[0].get("driver_version", "unknown"),
        "suites": arguments.suite,
        "budget_ms": arguments.budget_ms,
        # What is newer wins in tables.
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started),
        "clocks_before": before[1],
        "clocks": watch.range(),
        "notes": NOTES[: 2 if other else 1],
        "cusparselt": rounded(other),
    }
    save(arguments.out, header, runs)
    good = [run for run in runs if run.get("passed") and "speedup" in run]
    print(f"{len(cases)} cases, {len(runs)} runs, {len(good)} measured")
    for run in runs:
        result = run.get("error", "wrong")
        if run in good:
            result = f"{run['time']['median_us']:9.1f} us {run['speedup']:.2f}x"
        print(f"{run['file'][:-5]:46} {run.get('label', run['role']):9} {result}")
    return 0 if len(good) == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
