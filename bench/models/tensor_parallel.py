#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of a Llama at the sizes of 70B on one GPU and on several, dense and 2:4.

usage: tensor_parallel.py --json OUT [--gpus N] [--tokens T...] [--tiny]

A block has RMSNorm, attention and a gated MLP. Its layers are sharded by
`parallelize_module` of torch: q, k, v, gate and up along outputs, o and down along
inputs. All GPUs time the same pass as a CUDA graph, dense and sparse in turn; rank 0
also without sharding. Outputs are compared with those of the whole block, and of the
dense block that has the same zeros, before anything is timed. --tiny checks the script
on CPUs, with gloo.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist
import torch.nn.functional as F
from cuda_graphs import capture
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from nm_sparse.bindings import library
from nm_sparse.torch import NMLinear, NMSparseConfig, sparsify_

PLAN: Dict[str, Any] = {
    **{name: ColwiseParallel() for name in ("q", "k", "v", "gate", "up")},
    **{name: RowwiseParallel() for name in ("o", "down")},
}
HEAD = 128


class Block(nn.Module):
    """x + attention(norm(x)), and that + mlp(norm(that)), of one sequence."""

    def __init__(self, hidden: int, inner: int, heads: int, pairs: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(2))
        self.q = nn.Linear(hidden, heads * HEAD, bias=False)
        self.k = nn.Linear(hidden, pairs * HEAD, bias=False)
        self.v = nn.Linear(hidden, pairs * HEAD, bias=False)
        self.o = nn.Linear(heads * HEAD, hidden, bias=False)
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        q, k, v = (
            one(y).unflatten(-1, (-1, HEAD)).transpose(0, 1)[None]
            for one in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y[0].transpose(0, 1).flatten(1))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def make_blocks(options: argparse.Namespace, device: torch.device) -> List[Block]:
    """The dense block with zeros, and the sparse one."""
    sizes = (256, 512, 4, 2) if options.tiny else (8192, 28672, 64, 8)
    torch.manual_seed(0)
    dtype = torch.float32 if options.tiny else torch.float16
    with device:
        dense = Block(*sizes).to(dtype).eval().requires_grad_(False)
    sparse = copy.deepcopy(dense)
    config = NMSparseConfig("2:4", keep_slower=True)
    sparsify_(sparse, config, predictor=lambda *_: ())
    for name, layer in sparse.named_children():
        if isinstance(layer, NMLinear):
            getattr(dense, name).weight.data.copy_(layer.weight.to_dense())
    return [dense, sparse]


def relative_error(found: Tensor, wanted: Tensor) -> float:
    difference = (found.float() - wanted.float()).norm() / wanted.float().norm()
    return float(difference)


def microseconds(calls: List[Callable[[], Any]], repeats: int) -> List[float]:
    """The median time of each, in turn."""
    times: List[List[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, found in zip(calls, times):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(10):
                call()
            end.record()
            end.synchronize()
            found.append(start.elapsed_time(end) * 100)
    return [statistics.median(found) for found in times]


def measure(blocks: List[Block], x: Tensor, wanted: Tensor, tiny: bool) -> Dict:
    """Errors, and times of the dense and the sparse block for one input."""
    errors = [relative_error(block(x), wanted) for block in blocks]
    limit = 1e-4 if tiny else 5e-3
    if max(errors) > limit:
        raise SystemExit(f"{len(x)} tokens: errors {errors}, legal is {limit}")
    row: Dict[str, Any] = {"errors": errors}
    if not tiny:
        calls = [capture(lambda b=block: b(x)) for block in blocks]
        row["dense_us"], row["sparse_us"] = microseconds(calls, 20)
        row["ratio"] = row["dense_us"] / row["sparse_us"]
    return row


def run(rank: int, options: argparse.Namespace) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29561")
    kind = "cpu" if options.tiny else "cuda"
    if not options.tiny:
        torch.cuda.set_device(rank)
    device = torch.device(kind, None if options.tiny else rank)
    backend = "gloo" if options.tiny else "nccl"
    dist.init_process_group(backend, rank=rank, world_size=options.gpus)
    mesh = init_device_mesh(kind, (options.gpus,))
    blocks = make_blocks(options, device)
    rows: List[Dict[str, Any]] = []
    inputs: Dict[int, Tensor] = {}
    with torch.no_grad():
        for tokens in options.tokens:
            torch.manual_seed(tokens)
            x = torch.randn(tokens, blocks[0].q.in_features, device=device)
            inputs[tokens] = x.to(blocks[0].q.weight.dtype)
        wanted = {t: blocks[0](x).clone() for t, x in inputs.items()}
        for tokens, x in inputs.items():
            row = {"tokens": tokens}
            row["one"] = measure(blocks, x, wanted[tokens], options.tiny)
            rows.append(row)
            dist.barrier()
        for block in blocks:
            parallelize_module(block, mesh, PLAN)
        for row in rows:
            x, whole = inputs[row["tokens"]], wanted[row["tokens"]]
            dist.barrier()
            row["several"] = measure(blocks, x, whole, options.tiny)
            if rank == 0:
                print(row, flush=True)
    if rank == 0 and options.json:
        about = {
            "gpus": options.gpus,
            "gpu": "CPU" if options.tiny else torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "library": library.version(),
            "rows": rows,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
            file.write("\n")
    dist.barrier()
    if not options.tiny:
        torch.cuda.synchronize()
    os._exit(0)  # graphs of NCCL are not torn down in order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16, 512, 2048])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.multiprocessing.spawn(run, (options,), nprocs=options.gpus)


if __name__ == "__main__":
    main()
