#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers by kernels for any number of tokens, and by those for one number.

usage: token_counts.py --json OUT [--draws N] [--seed S] [--processes N]

Layers and numbers of tokens are drawn by the seed: inputs and outputs are multiples of
128, and tokens anything from 33 to 4096; both are as likely to double as to be halved.
A layer is 2:4 in bf16 or e4m3, 8:32 with vectors of 128, or 8:16; some are gate and up
of an MLP. Microseconds are those of CUDA graphs in turn, with the dense layers of bf16,
or of e4m3 with scales of rows; results of both programs are compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from cuda_graphs import capture, microseconds
from torch import Tensor, nn

from nm_sparse.bindings import library
from nm_sparse.torch import NMLinear, quantize_tokens
from nm_sparse.torch.layers.kernels import stream_of
from nm_sparse.torch.layers.scaled_kernels import find_scaled
from nm_sparse.torch.layers.shared_kernels import SharedKernels, find_gated, find_shared
from nm_sparse.torch.weight.spec import LinearSpec
from nm_sparse.torch.weight.stored_forms import STORED

E4M3 = "f8E4M3FN"
PATTERNS = ("2:4", "2:4", "8:32, block = [1, 128]", "8:16")


@dataclass(frozen=True)
class Case:
    """One layer, or gate and up of an MLP, and the tokens that it multiplies."""

    spec: LinearSpec
    gated: bool
    tokens: int

    def find(self, exact: bool) -> Optional[SharedKernels]:
        spec = replace(self.spec, tokens=self.tokens if exact else None)
        device = torch.device("cuda", 0)
        both = (spec,) * (1 + self.gated)
        if spec.elements is not None:
            biases = (False,) * len(both)
            return find_scaled(both, biases, "token", self.gated, device)
        if self.gated:
            return find_gated(spec, device)
        return find_shared(both, (False,), device)


def compile_both(case: Case) -> None:
    """Leaves the programs in the cache on disk."""
    for exact in (False, True):
        case.find(exact)


def draw(count: int, seed: int) -> List[Case]:
    rng = random.Random(seed)

    def between(low: int, high: int, unit: int) -> int:
        return unit * round(low * (high / low) ** rng.random() / unit)

    cases = []
    for at in range(count):
        pattern = PATTERNS[at % len(PATTERNS)]
        shape = between(1024, 16384, 128), between(1024, 16384, 128)
        elements = E4M3 if at % len(PATTERNS) == 1 else None
        gated = rng.random() < 0.3
        activation = "silu" if gated else "none"
        spec = LinearSpec(pattern, shape, "bf16", activation, elements=elements)
        cases.append(Case(spec, gated, between(33, 4096, 1)))
    return cases


Run = Callable[[], Tensor]


def dense_run(layers: List[nn.Module], x: Tensor, is_narrow: bool) -> Run:
    if not is_narrow:
        return lambda: [layer(x) for layer in layers][0]
    rows, x_scale = quantize_tokens(x, "e4m3", None)
    weights = [quantize_tokens(layer.weight, "e4m3", None) for layer in layers]
    own = dict(scale_a=x_scale, out_dtype=torch.bfloat16, use_fast_accum=True)
    return lambda: [
        torch._scaled_mm(rows, one.t(), scale_b=scale.view(1, -1), **own)
        for one, scale in weights
    ][0]


def sparse_run(made: SharedKernels, layers: List[NMLinear], x: Tensor) -> Run:
    is_narrow = layers[0].elements is not None
    parts = [layer.components() for layer in layers]
    others = []
    if is_narrow:
        scales = [one.pop() for one in parts]
        x, x_scale = quantize_tokens(x, "e4m3", None)
        others = [x_scale.reshape(-1), *scales]
    weights = [STORED.get(own, form) for own, form in zip(parts, made.forms)]
    return lambda: made(x, weights, others, stream_of(x))[0]


@torch.no_grad()
def measure(case: Case, repeats: int, seconds: float) -> Dict[str, Any]:
    n, k = case.spec.shape
    own = dict(bias=False, device="cuda", dtype=torch.bfloat16)
    dense: List[nn.Module] = [nn.Linear(k, n, **own) for _ in range(1 + case.gated)]
    kind = None if case.spec.elements is None else "e4m3"
    packed = [
        NMLinear.from_dense(one, case.spec.encoding, elements=kind) for one in dense
    ]
    x = torch.randn(case.tokens, k, device="cuda", dtype=torch.bfloat16)
    usual, exact = case.find(False), case.find(True)
    assert usual is not None and exact is not None
    runs: Dict[str, Run] = {
        "any": sparse_run(usual, packed, x),
        "one": sparse_run(exact, packed, x),
        "dense": dense_run(dense, x, kind is not None),
    }
    results = {name: run().float() for name, run in runs.items()}
    error = float((results["one"] - results["any"]).norm() / results["any"].norm())
    if not error < 0.01:
        raise SystemExit(f"{case}: results differ by {error}")
    graphs = {name: capture(run) for name, run in runs.items()}
    found: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in graphs.items():
            found[name].append(microseconds(run, seconds))
    return {
        "encoding": str(case.spec.encoding),
        "elements": case.spec.elements or case.spec.dtype,
        "gated": case.gated,
        "shape": [n, k],
        "tokens": case.tokens,
        "is_own": exact is not usual,
        "error": error,
        "us": {name: round(statistics.median(us), 2) for name, us in found.items()},
    }


def summary(rows: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Geometric means and least of time by any over time by one, and of dense over
    each, by pattern and elements."""
    found = {}
    groups: Dict[Tuple[str, str], List[Dict[str, float]]] = {}
    for row in rows:
        groups.setdefault((row["encoding"], row["elements"]), []).append(row["us"])
    for (encoding, elements), times in groups.items():
        ratios = {
            f"{above} / {below}": [us[above] / us[below] for us in times]
            for above, below in (("any", "one"), ("dense", "any"), ("dense", "one"))
        }
        found[f"{encoding}, {elements}"] = {
            name: [round(f(each), 3) for f in (statistics.geometric_mean, min, max)]
            for name, each in ratios.items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--draws", type=int, default=120)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.01)
    options = parser.parse_args()
    cases = draw(options.draws, options.seed)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        list(pool.map(compile_both, cases))
    rows = []
    for case in cases:
        rows.append(measure(case, options.repeats, options.seconds))
        print(rows[-1], flush=True)
    about = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "library": library.version(),
        "options": {name: x for name, x in vars(options).items() if name != "json"},
        "summary": summary(rows),
        "rows": rows,
    }
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")
    print(json.dumps(about["summary"], indent=1))


if __name__ == "__main__":
    main()
