#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of bf16 as elements of e4m3 with scales: a kernel, and what torch compiles.

usage: quantize_rows.py --json OUT [--tokens N...] [--columns K...] [--only NAME...]

Microseconds of CUDA graphs over several x, of

    divided      what a user writes: x / scale, compiled
    operators    those of `quantize_tokens`, which multiply by an inverse, compiled
    kernel       of `quantize_tokens`
    columns      of `quantize_tokens`, elements stored feature-major
    kernel, transposed   the rows, and a copy of torch that transposes elements
    copy         of torch, of as many bytes as are read and written in all
    norm         a residual and RMSNorm alone, compiled
    norm, operators  and  norm, kernel   both, compiled

and `read and write`, the time of the bytes at the rate of memory that --rate says.
"""

from __future__ import annotations

import argparse
import functools
import json
from typing import Any, Callable, Dict, List

import torch
from cuda_graphs import capture, microseconds
from fp8_layers import divided
from torch import Tensor

from nm_sparse.torch import quantize_tokens
from nm_sparse.torch.weight.quantize import quantize_by_operators

KIND = "f8E4M3FN"
COLD = 200 << 20  # bytes of x that are gone through in turn


def norm(x: Tensor, residual: Tensor, weight: Tensor) -> Any:
    x = x + residual
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return x, weight * wide.to(x.dtype)


def feature_major(x: Tensor) -> Any:
    return quantize_tokens(x, feature_major=True)


def transposed(x: Tensor) -> Any:
    elements, scale = quantize_tokens(x)
    return elements.t().contiguous(), scale


def copied(x: Tensor) -> Any:
    """Half of the bytes are read, and half are written."""
    return x.view(torch.uint8).flatten()[: x.numel() * 3 // 2].clone()


def with_norm(work: Callable[[Tensor], Any]) -> Callable[..., Any]:
    def run(x: Tensor, residual: Tensor, weight: Tensor) -> Any:
        x, y = norm(x, residual, weight)
        return x, *work(y)

    return torch.compile(run, dynamic=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 32, 512, 2048])
    parser.add_argument("--columns", type=int, nargs="+",
                        default=[1024, 3072, 4096, 8192, 14336, 18944])  # fmt: skip
    parser.add_argument("--rate", type=float, default=4.8, help="TB/s of the memory")
    parser.add_argument("--only", nargs="+", help="names of what is measured")
    options = parser.parse_args()
    torch._dynamo.config.recompile_limit = 64
    by_operators = functools.partial(quantize_by_operators, kind=KIND)
    single = {
        "divided": torch.compile(lambda x: divided(x, "e4m3"), dynamic=False),
        "operators": torch.compile(by_operators, dynamic=False),
        "kernel": quantize_tokens,
        "columns": feature_major,
        "kernel, transposed": transposed,
        "copy": copied,
    }
    rows_of = torch.ops.nm_sparse.quantize_rows
    both = {
        "norm": with_norm(lambda y: (y,)),
        "norm, operators": with_norm(by_operators),
        "norm, kernel": with_norm(lambda y: rows_of(y, KIND)),
    }
    for named in (single, both):
        for name in [*named]:
            if options.only is not None and name not in options.only:
                del named[name]
    about: Dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "rows": []}
    for tokens in options.tokens:
        for columns in options.columns:
            count = max(1, min(8, COLD // (tokens * columns * 2)))
            made: List[List[Tensor]] = [
                [torch.randn(tokens, columns, device="cuda").bfloat16() for _ in "xr"]
                for _ in range(count)
            ]
            weight = torch.randn(columns, device="cuda").bfloat16()
            graphs = {}
            for name, f in single.items():
                graphs[name] = capture(lambda: [f(x) for x, _ in made])  # noqa: B023
            for name, f in both.items():
                graphs[name] = capture(
                    lambda: [f(x, r, weight) for x, r in made]  # noqa: B023
                )
            row: Dict[str, Any] = {"tokens": tokens, "columns": columns}
            row["read and write"] = round(tokens * columns * 3 / options.rate / 1e6, 2)
            for name, run in graphs.items():
                times = [microseconds(run, 0.01) for _ in range(3)]
                row[name] = round(min(times) / count, 2)
            about["rows"].append(row)
            print(row, flush=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
