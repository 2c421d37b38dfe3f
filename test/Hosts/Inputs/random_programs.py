# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outlines the programs of random models, compiles them, calls them on the CPU, and
compares the results with those of the models as they are.

Usage: random_programs.py NM_OPT NM_COMPILE NM_RUN PREFIX MODELS
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from random_models import build_model

nm_opt, nm_compile, nm_run, prefix, models = sys.argv[1:]
OUTLINE = "--nm-sparse-outline-programs"


def call(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def link(text):
    """The model with its programs beside it rather than in a module."""
    declaration = r"^  func\.func private @nm_sparse_programs\..*\n"
    text = re.sub(declaration, "", text, flags=re.MULTILINE)
    start = text.index("  module @nm_sparse_programs {\n")
    end = text.index("\n  }\n", start)
    programs = text[start:end].split("\n", 1)[1]
    programs = programs.replace(
        "func.func @f_", "func.func private @nm_sparse_programs.f_"
    )
    return text[:start] + programs + text[end + len("\n  }") :]


def run(path):
    """The results of the program in `path`, from inputs of one seed."""
    output = path.with_suffix("")
    for old in path.parent.glob(f"{output.name}.*.npy"):
        old.unlink()
    call(nm_run, path, "--device", "cpu", "--size", "m=3", "--output", output)
    return [np.load(p) for p in sorted(path.parent.glob(f"{output.name}.*.npy"))]


count = 0
for seed in range(int(models)):
    model, outlined, linked, alone, ptx, manifest = (
        Path(f"{prefix}-{name}")
        for name in (
            "model.mlir",
            "outlined.mlir",
            "linked.mlir",
            "alone.mlir",
            "alone.ptx",
            "alone.json",
        )
    )
    model.write_text(build_model(seed))
    call(nm_opt, model, f"{OUTLINE}=only-programs", "-o", alone)
    call(nm_compile, alone, "--tokens", "16", "-o", ptx, "--manifest", manifest)
    count += alone.read_text().count("func.func @")
    outlined.write_text(link(call(nm_opt, model, OUTLINE)))
    call(nm_opt, outlined, "--inline", "-o", linked)
    wanted, found = run(model), run(linked)
    if len(wanted) != len(found) or not all(
        np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(a) for a, b in zip(wanted, found)
    ):
        print(f"model {seed} differs")
print(f"{models} models, {count} programs")
