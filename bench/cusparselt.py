#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times cuSPARSELt's 2:4 product, with its algorithm search, through PyTorch.

A process of its own: run.py starts it beside nm-run. Both take the same lock
while they measure, so the measurements of the two alternate. cuBLAS is timed
here too, on dense weights, in turns with cuSPARSELt.

Usage: cusparselt.py PROBLEMS.json OUT.json --lock FILE [--budget-ms N]
                     [--deadline SECONDS]
PROBLEMS is a list of {"type": "f16" | "bf16", "shape": [m, n, k]}.
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import math
import re
import statistics
import sys
import time

TYPES = {"f16": "float16", "bf16": "bfloat16"}
WANTED_BYTES = 160 << 20  # as nm-run: several times the L2 cache
MOST_SETS = 4  # capturing one call of torch._cslt_sparse_mm takes 0.2 s


@contextlib.contextmanager
def device(path, alone):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def find_version():
    """That of the library which runs: one that LD_PRELOAD names, else PyTorch's."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "cusparseLtGetProperty"):
        with open("/proc/self/maps") as file:
            library = ctypes.CDLL(re.search(r"/\S*libcusparseLt\S*", file.read())[0])
    parts = []
    for part in range(3):  # major, minor, patch
        number = ctypes.c_int()
        library.cusparseLtGetProperty(part, ctypes.byref(number))
        parts.append(str(number.value))
    return ".".join(parts)


def count_sets(shape):
    m, n, k = shape
    return max(1, min(MOST_SETS, math.ceil(WANTED_BYTES / 2 / (m * k + k * n + m * n))))


def prune(torch, weight):
    """The two largest of each four."""
    groups = weight.view(-1, 4)
    kept = groups.abs().topk(2, dim=1).indices
    mask = torch.zeros_like(groups, dtype=torch.bool).scatter_(1, kept, True)
    return (groups * mask).view_as(weight)


def capture(torch, works, inner):
    """A graph of `inner` calls that take the functions of `works` in turn."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(inner):
            works[i % len(works)]()
    return graph


def take_turns(torch, graphs, rounds, warmup):
    """Microseconds of each replay: {name: [of the first round, ...]}. Who comes
    first changes from round to round."""

    def replay(graph):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        return begin, end

    for _ in range(warmup):
        for graph in graphs.values():
            graph.replay()
    events = {name: [] for name in graphs}
    for turn in range(rounds):
        names = list(graphs) if turn % 2 == 0 else list(graphs)[::-1]
        for name in names:
            events[name].append(replay(graphs[name]))
    torch.cuda.synchronize()
    return {
        name: [1000 * begin.elapsed_time(end) for begin, end in pairs]
        for name, pairs in events.items()
    }


def interleave(torch, graphs, inner, budget_ms):
    """Microseconds of one call: {name: {median_us, min_us, max_us, replays}}."""
    trial = take_turns(torch, graphs, 2, warmup=0)
    one_round = sum(sum(samples) for samples in trial.values()) / 2000
    rounds = max(5, min(50, int(budget_ms / max(one_round, 0.01))))
    timings = {}
    taken = take_turns(torch, graphs, rounds, warmup=max(1, rounds // 3))
    for name, replays in taken.items():
        samples = [microseconds / inner for microseconds in replays]
        timings[name] = {
            "median_us": statistics.median(samples),
            "min_us": min(samples),
            "max_us": max(samples),
            "replays": rounds,
        }
    return timings


def measure(torch, problem, lock, budget_ms):
    m, n, k = problem["shape"]
    # cuSPARSELt refuses other numbers of tokens; PyTorch pads, too.
    padded = -(-m // 8) * 8
    kind = getattr(torch, TYPES[problem["type"]])
    sets = count_sets(problem["shape"])

    def random(rows, columns):
        return torch.randn(rows, columns, device="cuda", dtype=kind)

    with device(lock, alone=False):
        wide = [random(padded, k) for _ in range(sets)]
        xs = [x[:m] for x in wide]
        dense = [random(n, k) for _ in range(sets)]
        pruned = prune(torch, random(n, k) / math.sqrt(k / 2))
        packed = [torch._cslt_compress(pruned) for _ in range(sets)]
        search = torch._C._cusparselt.mm_search
        found = search(packed[0], wide[0].t(), None, None, None, False)
        algorithm, split, mode = (int(value) for value in found[:3])

        def sparse(i):
            return torch._cslt_sparse_mm(
                packed[i],
                wide[i].t(),
                alg_id=algorithm,
                split_k=split,
                split_k_mode=mode,
            )

        want = pruned.double() @ wide[0].double().t()
        error = ((sparse(0).double() - want).norm() / want.norm()).item()
        if not error < 2e-2:
            return {**problem, "error": f"relative error {error}"}
        del want
        # Both ways in which the weight may lie.
        turned = [weight.t().contiguous() for weight in dense]
        inner = max(sets, 4 if m * n * k < 1 << 37 else 1)
        works = {
            "cusparselt": [lambda i=i: sparse(i) for i in range(sets)],
            "tn": [lambda i=i: xs[i] @ dense[i].t() for i in range(sets)],
            "nn": [lambda i=i: xs[i] @ turned[i] for i in range(sets)],
        }
        for work in works.values():
            work[0]()  # loads kernels, which a capture does not allow
        torch.cuda.synchronize()
    # Takes seconds, but not of the GPU.
    graphs = {name: capture(torch, work, inner) for name, work in works.items()}
    with device(lock, alone=True):
        begin = time.time()
        timings = interleave(torch, graphs, inner, budget_ms)
        end = time.time()
    best = min(timings["nn"]["median_us"], timings["tn"]["median_us"])
    return {
        **problem,
        "time": timings["cusparselt"],
        "cublas": {"nn": timings["nn"], "tn": timings["tn"]},
        "cublas_us": best,
        "speedup": best / timings["cusparselt"]["median_us"],
        "algorithm": [algorithm, split, mode],
        "relative_error": error,
        "sets": sets,
        "inner": inner,
        "measured_at": [begin, end],
    }


def measure_all(description, timed, measure, describe=None):
    """Runs `measure` on each problem of the file that the command line names, and
    writes what it returns after each one: a failed launch may end the process.

    timed:     what is not timed without PyTorch.
    measure:   of torch, a problem, the lock's file and a budget in milliseconds.
    describe:  what else the report says, of torch.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("problems")
    parser.add_argument("out")
    parser.add_argument("--lock", required=True)
    parser.add_argument("--budget-ms", type=float, default=50)
    parser.add_argument("--deadline", type=float, default=math.inf)
    arguments = parser.parse_args()
    started = time.time()
    try:
        import torch
    except ImportError:
        sys.exit(f"{parser.prog}: no PyTorch here, so {timed} is not timed")
    report = {"torch": torch.__version__, "runs": []}
    report.update(describe(torch) if describe else {})
    with open(arguments.problems) as file:
        problems = json.load(file)
    for problem in problems:
        if time.time() - started > arguments.deadline:
            break
        try:
            result = measure(torch, problem, arguments.lock, arguments.budget_ms)
        except RuntimeError as error:
            result = {**problem, "error": str(error).split("\n")[0]}
        torch.cuda.empty_cache()
        report["runs"].append(result)
        with open(arguments.out, "w") as file:
            json.dump(report, file)


def describe_library(torch):
    torch.backends.cusparselt.is_available()  # loads it
    return {"cusparselt": find_version()}


if __name__ == "__main__":
    measure_all(__doc__.split("\n")[0], "cuSPARSELt", measure, describe_library)
