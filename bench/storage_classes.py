#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one form of a weight for all numbers of tokens costs, by predicted times.

usage: storage_classes.py --json OUT [--seed S] [--shapes N] [--gpu G]... [--bin FOLDER]
       [--pattern P]... [--processes N]

A weight is stored once, and all kernels of its program read that form. This compares
it with the best form for each number of tokens: the weight in canonical form or as
bitmaps, by its own pattern or by one that contains it (`--embed`). Patterns are those
of `nm-compile --print-support`, and further ones; those that are free or shuffled have
one form alone, and are only listed. Inputs and outputs of layers are drawn by the seed.
It needs no GPU: times are those of the cost model, of the best schedule for just that
number of tokens in either form.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from advise_bar import PROGRAM
from draw import Draw

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = ("f32", "f16", "bf16", "f8E4M3FN", "i8")
TOKENS = (1, 4, 16, 64, 256, 1024, 4096)
# Element-wise patterns besides those of the support: long windows, as nmSPARSE and
# others have them, and one whose weights are 2:4, too.
MORE = ("16:32", "8:32", "1:4")
# The forms that the compiler may choose for some number of tokens, and both of the
# pattern as it is.
REQUESTS = (
    (),
    ("--storage", "canonical", "--embed", "never"),
    ("--storage", "bitmap", "--embed", "never"),
)
_PACKED = re.compile(r"packed<(#nm_sparse\.bitmap<)?(#nm_sparse\.encoding<[^>]*>)")
# Form of a weight: storage, and the text of the encoding that it is stored by.
Form = Tuple[str, str]


def run(tool: pathlib.Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [tool, *arguments], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def read_patterns(tool: pathlib.Path) -> List[Tuple[str, List[str]]]:
    """(pattern, types that are compiled) of the first table of the support."""
    rows = []
    for line in run(tool, "--print-support").splitlines()[2:]:
        if not line:
            break
        _, name, *cells, _ = (cell.strip() for cell in line.split("|"))
        pattern = name.split("`")[1]
        rows.append((pattern, [t for t, cell in zip(TYPES, cells) if cell == "yes"]))
    return rows


def find_common(tool: pathlib.Path, layer: Dict[str, Any], gpu: str) -> Optional[Form]:
    """How a program for any number of tokens stores the weight; None for a form that
    is neither canonical nor bitmaps."""
    own = f"#nm_sparse.encoding<{layer['pattern']}, dim = 1>"
    sizes = dict(k=layer["inputs"], n=layer["outputs"], type=layer["type"])
    program = PROGRAM
    if layer["type"] == "f32":
        program = re.sub(r"\n +%y_empty.*(?=\n  return)", "", program, flags=re.S)
        program = program.replace("return %y ", "return %sum ")
    elif layer["type"] == "i8":
        program = program.replace("f32", "i32").replace("0.0 :", "0 :")
        program = program.replace("arith.truncf", "arith.trunci")
    text = program.format(encoding=own, **sizes)
    front = run(tool, "-", "-o", "-", "--emit", "front", "--gpu", gpu, text=text)
    found = _PACKED.search(front)
    if found is None:
        return None
    return ("bitmap" if found[1] else "canonical"), found[2]


def has_one_form(pattern: str) -> bool:
    """Whether kernels read weights of it in one form alone."""
    return "free" in pattern or "shuffled" in pattern


def predict(
    tool: pathlib.Path, layer: Dict[str, Any], gpu: str, request: Tuple[str, ...]
) -> Dict[Form, Dict[str, Any]]:
    """Bytes and microseconds by the number of tokens, of each form."""
    shape = f"K={layer['inputs']},N={layer['outputs']}"
    counts = ",".join(map(str, TOKENS))
    command = ["--advise", "--shape", shape, "--type", layer["type"], "--gpu", gpu]
    command += ["--tokens", counts, "--pattern", layer["pattern"], "--json", "-"]
    found = {}
    for row in json.loads(run(tool, *command, *request))["patterns"]:
        times = {
            str(one["tokens"]): one["predicted_us"]
            for one in row.get("times", ())
            if "predicted_us" in one
        }
        if len(times) == len(TOKENS) and row["pattern"] == "dense":
            found["dense", ""] = {"us": times}
        elif len(times) == len(TOKENS):
            by = row.get("embedded", row["encoding"])
            found[row["storage"], by] = {"bytes": row["bytes"], "us": times}
    return found


def compare(tool: pathlib.Path, gpu: str, layer: Dict[str, Any]) -> Dict[str, Any]:
    """All forms of a layer's weight, and which of them is the common one."""
    forms: Dict[Form, Dict[str, Any]] = {}
    common, reason = None, ""
    try:
        common = find_common(tool, layer, gpu)
    except ValueError as error:
        reason = str(error)
    for request in REQUESTS:
        try:
            forms |= predict(tool, layer, gpu, request)
        except ValueError as error:
            reason = reason or str(error)
    dense = forms.pop(("dense", ""), None)
    rows = [
        {"storage": storage, "by": by, "is_common": (storage, by) == common, **more}
        for (storage, by), more in forms.items()
    ]
    found = {**layer, "gpu": gpu, "dense_us": dense and dense["us"], "forms": rows}
    if not any(row["is_common"] for row in rows):
        found["reason"] = reason or f"no times of the common form, {common}"
    return found


def losses(row: Dict[str, Any]) -> Optional[Dict[str, float]]:
    """Time in the common form over that in the best one, by the number of tokens."""
    common = next((form for form in row["forms"] if form["is_common"]), None)
    if common is None:
        return None
    return {
        count: us / min(form["us"][count] for form in row["forms"])
        for count, us in common["us"].items()
    }


def draw(seed: int, count: int) -> List[Tuple[int, int]]:
    """(inputs, outputs) of layers: multiples of 128, as most models have them."""
    source = Draw(seed)
    return [
        (source.log_uniform(1024, 14336, 128), source.log_uniform(1024, 14336, 128))
        for _ in range(count)
    ]


def plain(row: Dict[str, Any]) -> Dict[str, Any]:
    """Rounded, with lists in place of tables of numbers of tokens, and patterns in
    place of encodings; the common form is first."""

    def times(us: Optional[Dict[str, float]]) -> Optional[List[float]]:
        return us and [float(f"{us[str(count)]:.3g}") for count in TOKENS]

    forms = []
    for form in sorted(row["forms"], key=lambda form: not form["is_common"]):
        by = form["by"].partition("<")[2].rpartition(", dim")[0]
        forms.append({**form, "by": by, "us": times(form["us"])})
    return {**row, "dense_us": times(row["dense_us"]), "forms": forms}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--shapes", type=int, default=4)
    parser.add_argument("--gpu", action="append", help="h200 and h100 by default")
    parser.add_argument("--pattern", action="append", help=f"default: {MORE}")
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    tool = pathlib.Path(options.bin) / "nm-compile"
    more = MORE if options.pattern is None else options.pattern
    patterns = [*read_patterns(tool), *((pattern, list(TYPES)) for pattern in more)]
    cases = [
        (gpu, dict(pattern=pattern, type=type_, inputs=k, outputs=n))
        for gpu in options.gpu or ["h200", "h100"]
        for pattern, types in patterns
        if not has_one_form(pattern)
        for type_ in types
        for k, n in draw(options.seed, options.shapes)
    ]
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        rows = list(pool.map(lambda case: compare(tool, *case), cases))
    for row in rows:
        found = losses(row)
        text = row.get("reason", "").splitlines()[:1] if found is None else [
            f"{count}: {loss:.2f}" for count, loss in found.items()
        ]  # fmt: skip
        name = f"{row['gpu']} {row['type']} {row['pattern']}"
        print(f"{name} {row['inputs']} -> {row['outputs']}:", "  ".join(text))
    worst = [max(found.values()) for row in rows if (found := losses(row))]
    print(f"{len(rows)} layers; geometric mean of the worst loss of each, ", end="")
    print(f"{statistics.geometric_mean(worst):.3f}")
    about = {
        "library": run(tool, "--version").strip(),
        "seed": options.seed,
        "tokens": TOKENS,
        "one_form": [one for one, _ in patterns if has_one_form(one)],
        "rows": [plain(row) for row in rows],
    }
    text = json.dumps(about).replace('{"pattern"', '\n{"pattern"')
    pathlib.Path(options.json).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
