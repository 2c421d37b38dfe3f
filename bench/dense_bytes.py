#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times dense products of 8-bit elements, which cuBLASLt multiplies, in PyTorch.

A process of its own beside nm-run, as cusparselt.py is: both take the same lock
while they measure.

Usage: dense_bytes.py PROBLEMS.json OUT.json --lock FILE [--budget-ms N]
PROBLEMS is a list of {"type": "i8" | "e4m3", "shape": [m, n, k]}.
"""

import argparse
import json
import sys
import time

from cusparselt import capture, count_sets, device, interleave


def multiply(torch, kind, x, weight, scales):
    """y = x W^T: of i8 a sum in i32, of e4m3 one in bf16 with scales of both."""
    if kind == "i8":
        return torch._int_mm(x, weight.t())
    return torch._scaled_mm(x, weight.t(), *scales, out_dtype=torch.bfloat16)


def fill(torch, kind, rows, columns):
    if kind == "i8":
        return torch.randint(
            -128, 128, (rows, columns), device="cuda", dtype=torch.int8
        )
    return torch.randn(rows, columns, device="cuda").to(torch.float8_e4m3fn)


def measure(torch, problem, lock, budget_ms):
    m, n, k = problem["shape"]
    kind = problem["type"]
    sets = count_sets(problem["shape"])
    with device(lock, alone=False):
        xs = [fill(torch, kind, m, k) for _ in range(sets)]
        weights = [fill(torch, kind, n, k) for _ in range(sets)]
        scales = [torch.ones((), device="cuda") for _ in range(2)]
        want = xs[0].double() @ weights[0].double().t()
        got = multiply(torch, kind, xs[0], weights[0], scales).double()
        error = ((got - want).norm() / want.norm()).item()
        if not error < 2e-2:
            return {**problem, "error": f"relative error {error}"}
        del want, got
        inner = max(sets, 4 if m * n * k < 1 << 37 else 1)

        def work(i):
            return multiply(torch, kind, xs[i], weights[i], scales)

        graph = capture(torch, [lambda i=i: work(i) for i in range(sets)], inner)
    with device(lock, alone=True):
        begin = time.time()
        timings = interleave(torch, {"dense": graph}, inner, budget_ms)
        end = time.time()
    return {
        **problem,
        "time": timings["dense"],
        "relative_error": error,
        "sets": sets,
        "inner": inner,
        "measured_at": [begin, end],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems")
    parser.add_argument("out")
    parser.add_argument("--lock", required=True)
    parser.add_argument("--budget-ms", type=float, default=50)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("dense_bytes.py: no PyTorch here, so cuBLASLt is not timed")
    with open(arguments.problems) as file:
        problems = json.load(file)
    runs = []
    for problem in problems:
        try:
            runs.append(measure(torch, problem, arguments.lock, arguments.budget_ms))
        except RuntimeError as error:
            runs.append({**problem, "error": str(error).split("\n")[0]})
        torch.cuda.empty_cache()
        # After each one: a failed launch may end the process.
        with open(arguments.out, "w") as file:
            json.dump({"torch": torch.__version__, "runs": runs}, file)


if __name__ == "__main__":
    main()
