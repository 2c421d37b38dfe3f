#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of a Llama at the sizes of 8B, dense and sparse, through PyTorch on a GPU.

usage: llama_blocks.py --json OUT [--layers N] [--pattern P]... [--seed S] [--drawn N]
                       [--compiled P...] [--without-copies P...]

Weights are random, and what a pattern keeps is chosen by magnitude. A dense model is
compared with the sparse one that is made of it (`sparsify_`, `fuse_`,
`store_for_kernels_`); for patterns of --compiled both also through torch.compile, of
2048 tokens and of one sequence of decoding; for those of --without-copies also with no
dense copies for many tokens. All run as CUDA graphs, in turn, over some blocks, whose
weights are more than the L2 cache holds.

Of prefill: 512, 2048 and 3000 tokens, and --drawn numbers from 1 to 4096. Of decoding:
1, 8 and 32 sequences of one new token with a cache of --context tokens. Outputs are
compared with those of a dense model that has the same zeros before anything is timed.
Bytes are those of the models' tensors, and the most that is allocated during a prefill
of 2048 tokens, without what other models hold. --tiny checks the script on the CPU,
without times that mean anything.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import json
import random
import statistics
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
from cuda_graphs import capture, microseconds
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

from nm_sparse.bindings import library
from nm_sparse.torch import (
    NMLinear,
    NMSparseConfig,
    fuse_,
    sparsify_,
    store_for_kernels_,
)

PATTERNS = (
    "2:4",
    "8:16",
    "16:32, block = [1, 128]",
    "8:32, block = [1, 128]",
)
PREFILL = (512, 2048, 3000)
DECODE = (1, 8, 32)
COMPILED = "torch.compile"
BARE = "without copies"


def make_config(options: argparse.Namespace) -> LlamaConfig:
    sizes = dict(
        hidden_size=4096,
        intermediate_size=14336,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=1024,
    )
    if options.tiny:
        sizes.update(hidden_size=256, intermediate_size=512, num_attention_heads=4)
        sizes.update(num_key_value_heads=2)
    return LlamaConfig(
        **sizes,
        num_hidden_layers=options.layers,
        max_position_embeddings=8192,
        attn_implementation="sdpa",
    )


def make_model(options: argparse.Namespace) -> LlamaForCausalLM:
    torch.manual_seed(options.seed)
    device = "cpu" if options.tiny else "cuda"
    with torch.device(device):
        torch.set_default_dtype(torch.float32 if options.tiny else torch.float16)
        model = LlamaForCausalLM(make_config(options))
        torch.set_default_dtype(torch.float32)
    return model.eval()


def make_sparse(
    model: LlamaForCausalLM, pattern: str, dense_copies: bool = True
) -> str:
    """Makes the blocks sparse, for inference; what was done, for people."""
    config = NMSparseConfig(pattern, dense_copies=dense_copies)
    report = sparsify_(model, {"model.layers.*": config})
    if len(report.converted) != 7 * len(model.model.layers):
        raise SystemExit(f"{pattern}: not all layers became sparse:\n{report}")
    return f"{report}\n{fuse_(model)}\n{store_for_kernels_(model)}"


def tensor_bytes(model: LlamaForCausalLM) -> int:
    """Of all parameters, buffers and dense copies."""
    copied = sum(
        layer.out_features * layer.in_features * layer.values.element_size()
        for layer in model.modules()
        if isinstance(layer, NMLinear) and layer.dense_from is not None
    )
    parts = (*model.parameters(), *model.buffers())
    return copied + sum(part.nbytes for part in parts)


def copy_weights(sparse: LlamaForCausalLM, dense: LlamaForCausalLM) -> None:
    """Gives the dense model the weights of the sparse one, with zeros."""
    found = {
        name: layer.weight.to_dense()
        for name, layer in sparse.named_modules()
        if isinstance(layer, NMLinear)
    }
    for name, weight in found.items():
        dense.get_submodule(name).weight.data.copy_(weight)


class Prefill:
    """One pass over the blocks of `tokens` tokens of one sequence."""

    def __init__(self, model: LlamaForCausalLM, tokens: int) -> None:
        self.model = model
        vocabulary = model.config.vocab_size
        self.ids = torch.randint(vocabulary, (1, tokens), device=model.device)

    def __call__(self) -> torch.Tensor:
        return self.model.model(self.ids, use_cache=False).last_hidden_state


class Decode:
    """One new token of each of `batch` sequences, behind `context` tokens."""

    def __init__(self, model: LlamaForCausalLM, batch: int, context: int) -> None:
        self.model, self.context = model, context
        device = model.device
        self.cache = StaticCache(config=model.config, max_cache_len=context + 1)
        ids = torch.randint(model.config.vocab_size, (batch, context), device=device)
        prepare = getattr(model, "prepare", model.model)
        prepare(ids, past_key_values=self.cache, use_cache=True)
        self.ids = ids[:, :1].contiguous()
        self.position = torch.tensor([context], device=device)

    def __call__(self) -> torch.Tensor:
        for layer in self.cache.layers:  # which count what they hold
            layer.cumulative_length.fill_(self.context)
        return self.model.model(
            self.ids,
            past_key_values=self.cache,
            use_cache=True,
            cache_position=self.position,
            position_ids=self.position[None].expand(self.ids.shape[0], 1),
        ).last_hidden_state


def compare(
    runs: Dict[str, Callable[[], Any]], repeats: int, seconds: float
) -> Dict[str, float]:
    """Median microseconds of each, taken in turn."""
    found: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(microseconds(run, seconds))
    return {name: statistics.median(times) for name, times in found.items()}


Make = Callable[[LlamaForCausalLM], Callable[[], torch.Tensor]]


def compile_model(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """A copy whose blocks torch compiles, anew for each number of tokens."""
    copied = copy.deepcopy(model)
    copied.prepare = copied.model.forward  # for what is not timed
    copied.model.forward = torch.compile(copied.prepare, dynamic=False)
    return copied


class Graphs:
    """Runs of models as CUDA graphs, each made once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.known = options, {}

    def get(self, name: str, model: LlamaForCausalLM, make: Make, key: Any) -> Any:
        if (name, key) not in self.known:
            torch.manual_seed(self.options.seed + 1)  # the same tokens for all
            self.known[name, key] = capture(make(model))
        return self.known[name, key]


class Comparison:
    """A sparse model against the dense one that it was made of.

    dense:   the models that are timed beside it, by name, and their graphs.
    masked:  the dense one with zeros where nothing is kept, which says what is right.
    """

    def __init__(
        self,
        pattern: str,
        dense: Dict[str, LlamaForCausalLM],
        graphs: Graphs,
        options: argparse.Namespace,
    ) -> None:
        self.pattern, self.dense, self.graphs = pattern, dense, graphs
        self.options = options
        self.sparse, self.masked = (copy.deepcopy(dense["dense"]) for _ in range(2))
        self.said = make_sparse(self.sparse, pattern)
        copy_weights(self.sparse, self.masked)
        self.models = {"sparse": self.sparse}
        if pattern in options.compiled:
            self.models[f"sparse, {COMPILED}"] = compile_model(self.sparse)
        if pattern in options.without_copies:
            bare = copy.deepcopy(dense["dense"])
            make_sparse(bare, pattern, dense_copies=False)
            self.models[f"sparse, {BARE}"] = bare

    def row(self, make: Make, key: Any, with_compiled: bool) -> Dict[str, float]:
        """Times of what `make` gives of each model, and the error of the sparse one."""

        with_compiled = with_compiled and f"sparse, {COMPILED}" in self.models

        def is_chosen(name: str) -> bool:
            return with_compiled or COMPILED not in name

        own = Graphs(self.options)
        runs = {
            **{
                name: self.graphs.get(name, model, make, key)
                for name, model in self.dense.items()
                if is_chosen(name)
            },
            **{
                name: own.get(name, model, make, key)
                for name, model in self.models.items()
                if is_chosen(name)
            },
        }
        torch.manual_seed(self.options.seed + 1)
        expected = make(self.masked)().clone().float()
        errors = {
            name: float((runs[name]().float() - expected).norm() / expected.norm())
            for name in runs
            if name in self.models
        }
        if not max(errors.values()) < 0.02:
            raise SystemExit(f"outputs differ by {errors} of their norm")
        times = compare(runs, self.options.repeats, self.options.seconds)
        return {"error": max(errors.values()), **times}

    def rows(self) -> Iterator[Dict[str, Any]]:
        options = self.options
        draw = random.Random(options.seed)
        drawn = [draw.randint(1, 4096) for _ in range(options.drawn)]
        for tokens in (*PREFILL, *drawn) if not options.tiny else (5, 64):
            is_compiled = tokens in (PREFILL[1], 64)
            row = self.row(lambda m, t=tokens: Prefill(m, t), tokens, is_compiled)
            yield {"kind": "prefill", "tokens": tokens, **row}
        for batch in DECODE:
            make = functools.partial(Decode, batch=batch, context=options.context)
            row = self.row(make, -batch, batch == DECODE[0])
            yield {"kind": "decode", "batch": batch, **row}

    def measure(self) -> Dict[str, Any]:
        with torch.no_grad():
            models = {"dense": self.dense["dense"], **self.models}
            models.pop(f"sparse, {COMPILED}", None)
            memory = measure_bytes(models, self.options)
            print(self.pattern, memory, flush=True)
            rows = []
            for row in self.rows():
                rows.append(row)
                print(self.pattern, row, flush=True)
        return {
            "pattern": self.pattern,
            "bytes": memory,
            "said": self.said,
            "rows": rows,
        }


def peak_bytes(model: LlamaForCausalLM, tokens: int) -> Optional[int]:
    """The most that is allocated for a model and one prefill; None on the CPU."""
    run = Prefill(model, tokens)
    if not torch.cuda.is_available():
        run()
        return None
    run()  # after which kernels have what they keep beside the weights
    gc.collect()  # models of before hold each other
    torch.cuda.synchronize()
    others = torch.cuda.memory_allocated() - tensor_bytes(model)
    torch.cuda.reset_peak_memory_stats()
    result = run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - others
    if peak < tensor_bytes(model) + result.nbytes:
        raise SystemExit(f"a peak of {peak} bytes is less than weights and result")
    return peak


def measure_bytes(
    models: Dict[str, LlamaForCausalLM], options: argparse.Namespace
) -> Dict[str, Dict[str, Optional[int]]]:
    """Bytes of the tensors of each model, and the peak of a prefill."""
    tokens = 64 if options.tiny else 2048
    with torch.no_grad():
        Prefill(models["dense"], tokens)()  # makes the workspace of cuBLAS
        return {
            name: {"tensors": tensor_bytes(model), "peak": peak_bytes(model, tokens)}
            for name, model in models.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--pattern", action="append")
    for kind in ("--compiled", "--without-copies"):
        parser.add_argument(kind, nargs="*", default=[], metavar="PATTERN")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--drawn", type=int, default=8)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch._dynamo.config.recompile_limit = 64  # of all models together
    about: Dict[str, Any] = {
        "gpu": "none" if options.tiny else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "library": library.version() if library.available() else "none",
        "options": vars(options),
        "patterns": [],
    }
    dense = {"dense": make_model(options)}
    if options.compiled:
        dense[f"dense, {COMPILED}"] = compile_model(dense["dense"])
    graphs = Graphs(options)
    for pattern in options.pattern or PATTERNS:
        comparison = Comparison(pattern, dense, graphs, options)
        about["patterns"].append(comparison.measure())
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
