# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models through IREE: compiled, and run on the CPU or on the emulated driver; and
what a manifest says is launched."""

import functools
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from export_cases import BUILD, as_arrays, as_float

EMULATED = BUILD / "lib/emulated-cuda"
RUNNER = Path(__file__).parent / "run_iree_model.py"
FLAGS = {
    "cuda": ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"],
    "local-task": [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-llvmcpu-stack-allocation-limit=1048576",
    ],
}


@functools.lru_cache(None)
def has_iree():
    return bool(find_spec("iree") and find_spec("iree.compiler"))


needs_iree = pytest.mark.skipif(not has_iree(), reason="IREE is missing: bootstrap.sh")
needs_emulated_cuda = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not EMULATED.exists(),
    reason="NM_BUILD_DIR has no lib/emulated-cuda: scripts/check.sh sets it",
)


def compile_text(path, device):
    """The program that iree-compile makes of the text at `path`."""
    from iree.compiler import tools

    program = path.with_suffix(".vmfb")
    tools.compile_file(str(path), output_file=str(program), extra_args=FLAGS[device])
    return program


def run_program(program, device, parameters, calls, name="main"):
    """The results of each call with these operands, and the launches of the emulated
    driver."""
    folder = program.with_suffix(".calls")
    folder.mkdir()
    for number, operands in enumerate(calls):
        arrays = as_arrays(operands)
        arrays = [
            one.view(np.uint16) if one.dtype == np.int16 else one for one in arrays
        ]
        np.savez(folder / f"call.{number}.npz", *arrays)
    trace = folder / "trace"
    environment = {**os.environ, "NM_EMULATED_TRACE": str(trace)}
    if device == "cuda":
        environment["LD_LIBRARY_PATH"] = str(EMULATED)
    command = [sys.executable, RUNNER, device, program, parameters or "-", name, folder]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    results = []
    for number in range(len(calls)):
        arrays = np.load(folder / f"result.{number}.npz")
        results.append([arrays[name] for name in arrays.files])
    lines = trace.read_text().splitlines() if trace.exists() else []
    return results, [json.loads(line) for line in lines]


def check_close(found, wanted, tolerance):
    """Each element, relative to the largest one."""
    like = wanted.detach().double().numpy()
    assert found.shape == like.shape
    error = np.abs(as_float(found, wanted.dtype) - like).max()
    assert error <= tolerance * np.abs(like).max(), error


class _Sizes:
    def __init__(self, sizes):
        self.size, self.offset = sizes, 0
        self.stride = [int(np.prod(sizes[at + 1 :])) for at in range(len(sizes))]


def _evaluate(expression, names):
    functions = {
        "ceildiv": lambda a, b: -(-a // b),
        "floordiv": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "min": min,
        "max": max,
    }
    return eval(str(expression), {"__builtins__": {}}, {**functions, **names})


def expected_launches(manifest, calls, tokens):
    """(kernel, grid, block, shared memory) of each launch of the functions `calls`, in
    order, for so many tokens; those that depend on weights alone are not among them."""
    functions = {one["name"]: one for one in manifest["functions"]}
    launches = []
    for name in calls:
        function = functions[name]
        names = {}
        for argument in function["arguments"]:
            found = re.match(r"memref<(.*)x\w+>", argument["type"])
            sizes = found.group(1).split("x") if found else []
            names[argument["name"]] = _Sizes(
                [tokens if size == "?" else int(size) for size in sizes]
            )
        if "cases" in function:
            count = _evaluate(function["tokens"], names)
            chosen = next(
                c for c in function["cases"] if count <= c.get("at_most", count)
            )
            function = functions[chosen["function"]]
        weights = {a["name"] for a in function["arguments"] if "weight" in a}
        for launch in function["launches"]:
            reads = {
                p["source"]
                for p in launch["parameters"]
                if p["type"] == "ptr" and p.get("access") != "write"
            }
            if reads and reads <= weights:
                continue
            launches.append(
                (
                    launch["kernel"],
                    [_evaluate(size, names) for size in launch["grid"]],
                    [_evaluate(size, names) for size in launch["block"]],
                    _evaluate(launch["dynamic_shared_memory"], names),
                )
            )
    return launches
