#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes configurations for `nm-run --batch`: one MLIR file for each layer, and
`list.txt`.

By default the correctness sweep: every combination of element type, sparsity,
vector length, layout, shape and epilogue. With --suite, a suite of shapes.py.

Usage: make_configs.py OUT_DIR [--bench] [--suite NAME...] [--only TEXT]
"""

import argparse
import pathlib

import shapes
from layers import SPARSITIES, Layer

LENGTHS = {"f32": (1, 4, 32), "f16": (32, 64, 128), "bf16": (32, 64, 128)}
SHAPES = [
    (4096, 4096, 4096),
    (256, 1024, 4096),
    (1, 4096, 4096),
    (77, 1000, 1333),
    (1024, 4096, 11008),
]  # tokens, outputs, contraction


def sweep():
    return [
        shapes.Case(Layer(type_, sparsity, length, layout, shape, epilogue))
        for type_, lengths in LENGTHS.items()
        for sparsity in SPARSITIES
        for length in lengths
        for layout in ("token", "feature")
        for shape in SHAPES
        for epilogue in ("plain", "gelu")
    ]


def line(case, path, seed, flags):
    """The line of the list that runs `case`, whose file is `path`."""
    schedule = f' --schedule "{case.schedule}"' if case.schedule else ""
    return f"{path} --size {case.layer.shape[0]} --seed {seed} {flags}{schedule}"


def write_list(lines, folder):
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


def write(cases, folder, flags):
    """Writes the files; the lines of the list."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        line(case, case.layer.write(folder), seed, flags)
        for seed, case in enumerate(cases)
    ]
    write_list(lines, folder)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bench", action="store_true", help="measure as well as check")
    parser.add_argument("--suite", nargs="+", choices=shapes.SUITES)
    parser.add_argument("--only", default="", help="names that hold this text")
    arguments = parser.parse_args()
    if arguments.suite:
        cases = shapes.select(arguments.suite, arguments.only)
    else:
        cases = [case for case in sweep() if arguments.only in case.layer.name]
    flags = "--check" + (" --bench" if arguments.bench else "")
    lines = write(cases, arguments.out, flags)
    print(f"{len(lines)} configurations in {arguments.out}")


if __name__ == "__main__":
    main()
