#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The linear parts of a Llama-3-8B block, each alone, dense and sparse, on a GPU.

usage: llama_parts.py --json OUT [--pattern P] [--tokens N...]

Parts are those that `fuse_` makes: q, k and v together, o, and the MLP; then this
without down, its second product alone, and down. Each is a CUDA graph; dense and sparse
in turn.
"""

import argparse
import json
import statistics

import torch
import torch.nn.functional as F
from cuda_graphs import capture, microseconds
from torch import nn

from nm_sparse.torch import NMLinear
from nm_sparse.torch.layers.mlp import GatedMLP, shared_linear

SHAPES = {
    "q": (4096, 4096),
    "k": (4096, 1024),
    "v": (4096, 1024),
    "o": (4096, 4096),
    "gate": (4096, 14336),
    "up": (4096, 14336),
    "down": (14336, 4096),
}
TOKENS = (396, 472, 476, 480, 512, 2048)


def make_parts(pattern):
    """(sparse, dense) functions by the name of the part, and the inputs of each."""
    options = dict(bias=False, dtype=torch.float16, device="cuda")
    dense = {name: nn.Linear(*shape, **options) for name, shape in SHAPES.items()}
    sparse = {
        name: NMLinear.from_dense(layer, pattern).eval()
        for name, layer in dense.items()
    }
    gated, mlp = (
        GatedMLP(sparse["gate"], sparse["up"], down)
        for down in (nn.Identity(), sparse["down"])
    )

    def dense_gated(x):
        return F.silu(dense["gate"](x)) * dense["up"](x)

    shared = [sparse[name] for name in "qkv"]
    return {
        "qkv": (
            lambda x: shared_linear(x, shared),
            lambda x: [dense[name](x) for name in "qkv"],
        ),
        "o": (sparse["o"], dense["o"]),
        "mlp": (mlp, lambda x: dense["down"](dense_gated(x))),
        "gated": (gated, dense_gated),
        "up": (sparse["up"], dense["up"]),
        "down": (sparse["down"], dense["down"]),
    }


def measure(part, x, repeats=3, seconds=0.02):
    """Median microseconds of both, taken in turn."""
    runs = [capture(lambda function=function: function(x)) for function in part]
    found = [[microseconds(run, seconds) for run in runs] for _ in range(repeats)]
    sparse, dense = (statistics.median(column) for column in zip(*found))
    return {"sparse_us": round(sparse, 2), "dense_us": round(dense, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--pattern", default="2:4")
    parser.add_argument("--tokens", type=int, nargs="+", default=TOKENS)
    options = parser.parse_args()
    parts, rows = make_parts(options.pattern), []
    for tokens in options.tokens:
        row = {"pattern": options.pattern, "tokens": tokens}
        for name, part in parts.items():
            inputs = SHAPES[name if name in SHAPES else "q"][0]
            x = torch.randn(1, tokens, inputs, dtype=torch.float16, device="cuda")
            with torch.no_grad():
                row[name] = measure(part, x)
        rows.append(row)
        print(row, flush=True)
    about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({**about, "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
