#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NMLinear with one form of its weight and with a second one for few tokens, beside the
dense layer, on a GPU.

usage: decode_forms.py --out OUT [--deadline SECONDS] [--pattern P]... [--type T]
                       [--shape KxN]... [--tokens N]... [--repeats N] [--seconds S]
                       [--processes N] [--tiny]

Layers are element-wise at 50 and 75 % in f32, of nmSPARSE's shapes M3 to M8 (see
shapes.py), with random weights of a seed. Each result is compared with the product in
float64. Times are microseconds of one call, of CUDA graphs that go through several
copies of a layer, which together are more than the L2 cache holds; all rows take turns:

    dense        torch.nn.functional.linear, with the weight that is pruned
    one form     NMLinear as it is
    second form  with `decode_to` of 16
    few alone    with `decode_to` of all numbers of tokens: the form for one token, by
                 programs for as many tokens as there are
    chosen       what `use_decode_forms_` and `use_dense_` set by predicted times

No case is begun after the deadline. --tiny checks the script on the CPU, without times
that mean anything.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import math
import multiprocessing
import pathlib
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from shapes import NMSPARSE_PAIRS
from torch import Tensor, nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "models"))
from cuda_graphs import capture, microseconds  # noqa: E402

from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    NMLinear,
    use_decode_forms_,
    use_dense_,
)
from nm_sparse.torch.layers import kernels  # noqa: E402
from nm_sparse.torch.weight.spec import DTYPES  # noqa: E402

PATTERNS = ("16:32", "8:32")
TOKENS = (1, 4, 16, 17, 64, 256)
FEW = 16
COLD = 192 << 20  # bytes of weights that are gone through in turn
MOST_COPIES = 24
# Largest error relative to the largest result.
TOLERANCE = {"f32": 1e-4, "f16": 1e-2, "bf16": 3e-2}
# Times as fast as dense that one token must be, by pattern.
BARS = {"16:32": 1.8, "8:32": 2.6}

Case = Tuple[str, str, int, int]  # pattern, type, inputs, outputs
Run = Callable[[], Tensor]


def compile_programs(case: Case, most: int) -> None:
    """Leaves the programs of a layer in the cache on disk."""
    pattern, dtype, k, n = case
    device = torch.device("cuda", 0)
    for few in (None, FEW, most):
        spec = LinearSpec(pattern, (n, k), dtype, decode_to=few)
        kernels.find_kernels(spec, False, device)


def through(layers: Sequence[nn.Module], x: Tensor) -> Run:
    """All copies of a layer in turn; the result of the last one."""

    def run() -> Tensor:
        for layer in layers:
            y = layer(x)
        return y

    return run


class Dense(nn.Module):
    """A dense layer without bias."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


def make_rows(case: Case, most: int, device: str) -> Dict[str, List[nn.Module]]:
    """Copies of a layer, for each row."""
    pattern, dtype, k, n = case
    torch.manual_seed(k + n)
    linear = nn.Linear(k, n, bias=False, dtype=DTYPES[dtype], device=device)
    packed = NMLinear.from_dense(linear, pattern).eval().requires_grad_(False)
    weight = packed.weight.to_dense().detach()

    def with_forms(decode_to: Optional[int]) -> NMLinear:
        layer = copy.deepcopy(packed)
        layer.decode_to = decode_to
        return layer

    chosen = nn.Sequential(copy.deepcopy(packed))
    use_decode_forms_(chosen)
    use_dense_(chosen)
    rows: Dict[str, nn.Module] = {
        "dense": Dense(weight),
        "one form": with_forms(None),
        "second form": with_forms(FEW),
        "few alone": with_forms(most),
        "chosen": chosen[0],
    }
    found = {}
    for name, layer in rows.items():
        size = weight.nbytes if name == "dense" else packed.weight.nbytes
        count = min(MOST_COPIES, 1 + math.ceil(COLD / size)) if device == "cuda" else 2
        found[name] = [layer] + [copy.deepcopy(layer) for _ in range(count - 1)]
    return found


def compare(
    rows: Dict[str, List[nn.Module]], x: Tensor, dtype: str
) -> Dict[str, float]:
    """The largest error of each row against float64, relative to the largest result."""
    weight = rows["dense"][0].weight
    wanted = x.double() @ weight.double().t()
    errors = {}
    for name, layers in rows.items():
        for layer in (layers[0], layers[-1]):
            difference = (layer(x).double() - wanted).abs().max()
            errors[name] = float(difference / wanted.abs().max())
            if not errors[name] < TOLERANCE[dtype]:
                raise SystemExit(f"{name} of {len(x)} tokens: error {errors[name]}")
    return errors


@torch.no_grad()
def measure(
    rows: Dict[str, List[nn.Module]],
    case: Case,
    tokens: int,
    options: argparse.Namespace,
) -> Dict[str, Any]:
    pattern, dtype, k, n = case
    device = rows["dense"][0].weight.device
    x = torch.randn(tokens, k, device=device).to(DTYPES[dtype])
    errors = compare(rows, x, dtype)
    runs = {name: capture(through(layers, x)) for name, layers in rows.items()}
    found: Dict[str, List[float]] = {name: [] for name in rows}
    for _ in range(options.repeats):
        for name, run in runs.items():
            us = microseconds(run, options.seconds)
            found[name].append(us / len(rows[name]))
    chosen: Any = rows["chosen"][0]
    return {
        "pattern": pattern,
        "type": dtype,
        "inputs": k,
        "outputs": n,
        "tokens": tokens,
        "chosen": {"decode_to": chosen.decode_to, "dense_from": chosen.dense_from},
        "copies": {name: len(layers) for name, layers in rows.items()},
        "error": {name: float(f"{error:.2e}") for name, error in errors.items()},
        "us": {name: round(statistics.median(us), 2) for name, us in found.items()},
    }


def summarize(rows: List[Dict[str, Any]]) -> Dict[str, Any]:
    """For each pattern and number of tokens the geometric mean and the least of dense
    time over that of each row, and of the time with one form over that with two."""
    found: Dict[str, Any] = {}
    for row in rows:
        key = f"{row['pattern']}, {row['tokens']} tokens"
        us = row["us"]
        ratios = {f"dense / {name}": us["dense"] / us[name] for name in us}
        ratios["one form / second form"] = us["one form"] / us["second form"]
        del ratios["dense / dense"]
        for name, ratio in ratios.items():
            found.setdefault(key, {}).setdefault(name, []).append(ratio)
    for group in found.values():
        for name, ratios in group.items():
            mean = statistics.geometric_mean(ratios)
            group[name] = {"mean": round(mean, 3), "least": round(min(ratios), 3)}
    for pattern, bar in BARS.items():
        group = found.get(f"{pattern}, 1 tokens")
        if group is not None:
            group["bar"] = bar
            group["is_met"] = group["dense / second form"]["least"] >= bar
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--deadline", type=float, default=math.inf)
    parser.add_argument("--pattern", action="append")
    parser.add_argument("--type", default="f32", choices=list(TOLERANCE))
    parser.add_argument("--shape", action="append", help="such as 4096x4096, KxN")
    parser.add_argument("--tokens", action="append", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--tiny", action="store_true")
    return parser.parse_args()


def main() -> None:
    started, options = time.time(), parse()
    device = "cpu" if options.tiny else "cuda"
    pairs = NMSPARSE_PAIRS[2:]
    if options.shape:
        pairs = [tuple(map(int, one.split("x"))) for one in options.shape]
    elif options.tiny:
        pairs = [(96, 64), (64, 160)]
    tokens = options.tokens or TOKENS
    patterns = options.pattern or PATTERNS
    cases = [(pattern, options.type, k, n) for k, n in pairs for pattern in patterns]
    if not options.tiny:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
            list(pool.map(compile_programs, cases, [max(tokens)] * len(cases)))
    print(f"compiled after {time.time() - started:.0f} s", flush=True)
    rows: List[Dict[str, Any]] = []
    is_complete = True
    for case in cases:
        if time.time() - started > options.deadline:
            is_complete = False
            break
        layers = make_rows(case, max(tokens), device)
        for count in tokens:
            rows.append(measure(layers, case, count, options))
            print(rows[-1], flush=True)
        del layers
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
    about = {
        "gpu": "none" if options.tiny else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "library": library.version(),
        "is_complete": is_complete,
        "summary": summarize(rows),
        "rows": rows,
    }
    text = json.dumps(about, indent=1) + "\n"
    pathlib.Path(options.out).write_text(text, "utf-8")
    print(json.dumps(about["summary"], indent=1))


if __name__ == "__main__":
    main()
