#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times dense products of 8-bit elements, which cuBLASLt multiplies, in PyTorch.

A process of its own beside nm-run, as cusparselt.py is: both take the same lock
while they measure.

Usage: dense_bytes.py PROBLEMS.json OUT.json --lock FILE [--budget-ms N]
                      [--deadline SECONDS]
PROBLEMS is a list of {"type": "i8" | "e4m3", "shape": [m, n, k]}.
"""

import time

from cusparselt import capture, count_sets, device, interleave, measure_all


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


if __name__ == "__main__":
    measure_all(__doc__.split("\n")[0], "cuBLASLt", measure)
