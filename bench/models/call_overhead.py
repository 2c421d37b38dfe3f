#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call of a compiled program costs the host, from Python, on a GPU.

usage: call_overhead.py [--json OUT] [--calls N] [--repeats N]

Layers are so small that the GPU waits for the host: the time of many calls, divided
by their number, is what the host takes for one. "program" is a call of a compiled
program, "direct" the C function behind it. Beside it are the dense layer of torch and
an NMLinear, both with and without gradients, and what the driver alone takes for a
launch (launch_floor.c, where there is a C compiler). Layers of e4m3 round their input,
by a kernel in front; they have no program here. Needs the package with its library,
and torch with a GPU.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F

import nm_sparse as nm
from nm_sparse.bindings import library
from nm_sparse.torch import NMLinear

LAYERS = (
    ("2:4", 1, None),
    ("2:4", 64, None),
    ("8:32, block = [1, 128]", 1, None),
    ("8:32, block = [1, 128]", 64, None),
    ("2:4", 1, "e4m3"),
    ("2:4", 64, "e4m3"),
)
SIZE = 512


def microseconds(call: Callable[[], Any], calls: int) -> float:
    """Of one call, the mean of several, which the queue of the GPU has room for."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    found = (time.perf_counter() - start) / calls * 1e6
    torch.cuda.synchronize()
    return found


Calls = Dict[str, Callable[[], Any]]


def make_calls(
    pattern: str, tokens: int, elements: Optional[str]
) -> Tuple[Calls, float]:
    """What is timed, by name, and the largest relative error of the program, or of the
    layer where there is none."""
    torch.manual_seed(tokens)
    encoding = nm.Encoding.parse(f"{pattern}, dim = 1")
    dense = torch.nn.Linear(SIZE, SIZE, dtype=torch.float16, device="cuda")
    own = {} if elements is None else dict(elements=elements, activations=elements)
    layer = NMLinear.from_dense(dense, encoding, **own)
    weight = layer.to_dense().weight.detach()
    x = torch.randn(tokens, SIZE, dtype=torch.float16, device="cuda")
    bias = dense.bias.detach()
    expected = F.linear(x.double(), weight.double(), bias.double())
    calls: Calls = {}
    if elements is None:
        calls, y = make_program(encoding, weight, x, bias)
    else:
        with torch.no_grad():
            y = layer(x)
        launch = layer._eager_elements._launch
        if launch is None or not launch._rounded:
            raise SystemExit(f"{elements}: x is not rounded by the C module")
    error = float((y - expected).abs().max() / expected.abs().max())

    def without_gradients(call: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return call()

        return run

    calls["NMLinear"] = lambda: layer(x)
    # As the layer: a module, whose weight is trained.
    calls["dense"] = lambda: dense(x)
    for name in ("NMLinear", "dense"):
        calls[f"{name}, no_grad"] = without_gradients(calls[name])
    calls["F.linear"] = lambda: F.linear(x, weight, bias)
    return calls, error


def make_program(
    encoding: nm.Encoding, weight: torch.Tensor, x: torch.Tensor, bias: torch.Tensor
) -> Tuple[Calls, torch.Tensor]:
    """Calls of a compiled program, and its result."""
    program = nm.compile(nm.LinearSpec(encoding.mlir(), SIZE, SIZE, bias=True))
    packed = program.prepare(nm.pack(weight.cpu(), encoding), like=x)
    y = torch.full((len(x), SIZE), float("nan"), dtype=torch.float16, device="cuda")
    program(x, packed, bias, y)
    direct = program["linear"].direct
    return {
        "program": lambda: program(x, packed, bias, y),
        "direct": lambda: direct(None, x, packed, bias, y),
    }, y


def launch_floor() -> Optional[float]:
    """Microseconds that the driver takes for a launch; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source = pathlib.Path(__file__).with_name("launch_floor.c")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "launch_floor"
        subprocess.run(
            [compiler, "-O2", str(source), "-o", str(program), "-ldl"], check=True
        )
        return float(subprocess.check_output([str(program)], text=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    floor = launch_floor()
    print(f"the driver alone: {floor} us", flush=True)
    made = [make_calls(*layer) for layer in LAYERS]
    found: List[Dict[str, List[float]]] = [{n: [] for n in c} for c, _ in made]
    for _ in range(options.repeats):  # in turn: a virtual machine has slow moments
        for (calls, _), times in zip(made, found):
            for name, call in calls.items():
                times[name].append(microseconds(call, options.calls))
    rows = []
    for (pattern, tokens, elements), (calls, error), times in zip(LAYERS, made, found):
        row: Dict[str, Any] = {"pattern": pattern, "tokens": tokens, "error": error}
        if elements is not None:
            row["elements"] = elements
        row.update({name: statistics.median(times[name]) for name in calls})
        row["least"] = {name: min(times[name]) for name in calls}
        rows.append(row)
        print(
            f"{pattern}, {elements or 'f16'}, {tokens} tokens, error {error:.1e}: "
            + ", ".join(
                f"{name} {row[name]:.1f} ({row['least'][name]:.1f}) us"
                for name in calls
            ),
            flush=True,
        )
    if options.json:
        about = {
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "library": library.version(),
            "size": SIZE,
            "driver_us": floor,
            "rows": rows,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
