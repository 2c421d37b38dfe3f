#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of models at numbers of tokens between decoding and long prompts: dense and
sparse, through PyTorch and CUDA graphs, in turns.

usage: prefill_blocks.py --json OUT [--models NAME...] [--patterns P...]
                         [--tokens N...] [--layers N] [--tune MINUTES] [--compiled]
                         [--shared-kernels] [--tiny]

Weights are random, of bf16, and what a pattern keeps is chosen by magnitude
(`sparsify_`, `fuse_`, `store_for_kernels_`, without dense copies). With --tune,
schedules of the sparse models are measured first (`nm_sparse.tune`), in a database of
this run alone, for so long at most with each model. Outputs are compared with those of
a dense model that has the same zeros before anything is timed. With --compiled,
torch.compile makes the graphs of both; without, captured calls are specialized, unless
--shared-kernels is given. "rest" is the dense model without its linear
layers: what no kernel of theirs makes faster. --tiny checks the script on the CPU,
without times that mean anything.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import random
import statistics
import tempfile
import time
from contextlib import nullcontext
from typing import Any, Callable, Dict, List

import torch
from cuda_graphs import capture, microseconds
from loaded_blocks import LIMIT, MODELS, device, make_dense
from torch import Tensor, nn

import nm_sparse
from nm_sparse.bindings import library
from nm_sparse.torch import (
    NMLinear,
    NMSparseConfig,
    fuse_,
    sparsify_,
    specialize_tokens,
    store_for_kernels_,
)

NAMES = ("Llama-8B", "Qwen2-7B", "Mistral-7B", "NeoX-20B")
PATTERNS = ("2:4", "8:32, block = [1, 128]")


class Nothing(nn.Module):
    """In place of a linear layer, what takes no time: a result that is there."""

    def __init__(self, layer: nn.Linear, tokens: int) -> None:
        super().__init__()
        shape = 1, tokens, layer.out_features
        self.result = torch.zeros(
            shape, dtype=layer.weight.dtype, device=layer.weight.device
        )

    def forward(self, _x: Tensor) -> Tensor:
        return self.result


def make_rest(dense: Any, tokens: int) -> Any:
    """The model without the linear layers of its blocks."""
    names = [
        name
        for name, layer in dense.named_modules()
        if isinstance(layer, nn.Linear) and is_block(name)
    ]
    model = copy.deepcopy(dense)
    for name in names:
        model.set_submodule(name, Nothing(model.get_submodule(name), tokens))
    return model


def prefill(
    model: Any, tokens: int, options: argparse.Namespace, is_timed: bool = True
) -> Callable[[], Tensor]:
    """One pass over the blocks of one sequence."""
    seed, forward = options.seed, model.base_model
    if options.compiled and is_timed:
        forward = torch.compile(model.base_model.forward, dynamic=False)
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(model.config.vocab_size, (1, tokens), generator=drawn)
    ids = ids.to(device())
    return lambda: forward(ids, use_cache=False).last_hidden_state


def is_block(name: str) -> bool:
    return "layers." in name


def make_sparse(dense: Any, pattern: str) -> Any:
    """A copy whose blocks are sparse, for inference."""
    model = copy.deepcopy(dense)
    config = NMSparseConfig(pattern, dense_copies=False)
    names = [name for name, _ in model.named_modules() if is_block(name)]
    prefix = names[0].split("layers.")[0]
    report = sparsify_(model, {f"{prefix}layers.*": config})
    if not report.converted:
        raise SystemExit(f"{pattern}: no layer became sparse:\n{report}")
    fuse_(model)
    store_for_kernels_(model)
    return model


def make_masked(dense: Any, sparse: Any) -> Any:
    """The dense model with zeros where the sparse one keeps nothing."""
    model = copy.deepcopy(dense)
    found = {
        name: layer.weight.to_dense()
        for name, layer in sparse.named_modules()
        if isinstance(layer, NMLinear)
    }
    for name, weight in found.items():
        model.get_submodule(name).weight.data.copy_(weight)
    return model


def tune_model(model: Any, options: argparse.Namespace) -> Dict[str, Any]:
    """Measures schedules; what that took."""
    begun, found = time.monotonic(), []
    database = os.environ["NM_SPARSE_TUNED"]
    for one in nm_sparse.tune(
        model, options.tokens, database, options.gpu, minutes=options.tune,
        sample_ms=150,
    ):  # fmt: skip
        found.append(one)
        if one.wrong or one.failure:
            raise SystemExit(f"{one}")
    gains = [one.model_us / one.us for one in found if one.schedule]
    return {
        "problems": len(found),
        "seconds": time.monotonic() - begun,
        "over the model": statistics.geometric_mean(gains) if gains else None,
    }


def measure(
    name: str, dense: Any, pattern: str, options: argparse.Namespace
) -> List[Dict[str, Any]]:
    sparse = make_sparse(dense, pattern)
    tuned = tune_model(sparse, options) if options.tune else None
    masked = make_masked(dense, sparse)
    rows = []
    kernels = nullcontext if options.shared_kernels else specialize_tokens
    for tokens in options.tokens:
        runs = {
            "dense": capture(prefill(dense, tokens, options)),
            "rest": capture(prefill(make_rest(dense, tokens), tokens, options)),
        }
        with kernels():
            runs["sparse"] = capture(prefill(sparse, tokens, options))
        want = prefill(masked, tokens, options, is_timed=False)().float()
        error = float((runs["sparse"]().float() - want).norm() / want.norm())
        if not error < LIMIT:
            raise SystemExit(f"{name}, {pattern}: outputs differ by {error}")
        times: Dict[str, List[float]] = {key: [] for key in runs}
        for _ in range(options.repeats):
            for key, run in runs.items():
                times[key].append(microseconds(run, options.seconds))
        found = {key: statistics.median(own) for key, own in times.items()}
        rows.append(
            {
                "model": name, "pattern": pattern, "tokens": tokens, "error": error,
                **{f"{key}_us": us for key, us in found.items()},
                "speed": found["dense"] / found["sparse"], "tuned": tuned,
                "compiled": options.compiled,
                "specialized": options.compiled or not options.shared_kernels,
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=NAMES)
    parser.add_argument("--patterns", nargs="+", default=PATTERNS)
    parser.add_argument("--tokens", type=int, nargs="+", default=[150, 700])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tune", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--gpu", default="h200", help="its name in databases")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--shared-kernels", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch._dynamo.config.recompile_limit = 64  # of all models together
    rows: List[Dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        if options.tune:
            path = os.path.join(folder, "tuned.jsonl")
            os.environ["NM_SPARSE_TUNED"] = path
            with open(path, "w", encoding="utf-8"):
                pass  # layers of before the search have no measured times
        for name in options.models:
            dense = make_dense(name, options)
            for pattern in options.patterns:
                rows += measure(name, dense, pattern, options)
                gc.collect()
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(
                        {
                            "gpu": torch.cuda.get_device_name()
                            if torch.cuda.is_available()
                            else "CPU",
                            "torch": torch.__version__,
                            "library": library.version(),
                            "seed": options.seed,
                            "rows": rows,
                        },
                        file,
                        indent=1,
                    )
            del dense


if __name__ == "__main__":
    main()
