#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of a Llama at the sizes of 8B, dense and sparse, through PyTorch on a GPU.

usage: llama_blocks.py --json OUT [--layers N] [--pattern P]... [--seed S] [--drawn N]

Weights are random, and what a pattern keeps is chosen by magnitude. For each pattern
two models are compared: the sparse one (NMLinear, `fuse_`, `store_for_kernels_`), and a
dense one with the same weights, zeros where nothing is kept, as it is and, for the
patterns of --compiled, through torch.compile (2048 tokens, and one sequence of
decoding). All run as CUDA graphs, in turn, over some blocks, whose weights are more
than the L2 cache holds.

Of prefill: 512, 2048 and 3000 tokens, and --drawn numbers from 1 to 4096. Of decoding:
1, 8 and 32 sequences of one new token with a cache of --context tokens. Outputs are
compared with those of the dense model before anything is timed. Bytes are those of the
models' tensors, and the most that is allocated during a prefill of 2048 tokens, without
what other models hold. --tiny checks the script on the CPU, without times that mean
anything.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from typing import Any, Callable, Dict, List, Optional

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import nm_sparse as nm
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
COMPILED = "dense, torch.compile"


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


def make_sparse(model: LlamaForCausalLM, pattern: str) -> str:
    """Makes the blocks sparse, for inference; what was done, for people."""
    config = NMSparseConfig(pattern, keep_slower=True)
    report = sparsify_(model, {"model.layers.*": config})
    if len(report.converted) != 7 * len(model.model.layers):
        raise SystemExit(f"{pattern}: not all layers became sparse:\n{report}")
    return f"{report}\n{fuse_(model)}\n{store_for_kernels_(model)}"


def tensor_bytes(model: LlamaForCausalLM) -> int:
    """Of all parameters and buffers."""
    return sum(part.nbytes for part in (*model.parameters(), *model.buffers()))


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
        model.model(ids, past_key_values=self.cache, use_cache=True)
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


def capture(run: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """`run` as a CUDA graph, or as it is on the CPU."""
    if not torch.cuda.is_available():
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()

    def replay(inputs: Any = run) -> torch.Tensor:
        graph.replay()  # which reads memory of `inputs`, so that must live as long
        return result

    return replay


def microseconds(run: Callable[[], Any], seconds: float) -> float:
    """Of one run, over at least `seconds`."""
    if not torch.cuda.is_available():
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    count = max(3, int(seconds * 1e3 / max(begin.elapsed_time(end), 1e-3)))
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def compare(
    runs: Dict[str, Callable[[], Any]], repeats: int, seconds: float
) -> Dict[str, float]:
    """Median microseconds of each, taken in turn."""
    found: Dict[str, List[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(microseconds(run, seconds))
    return {name: statistics.median(times) for name, times in found.items()}


def measure(
    models: Dict[str, LlamaForCausalLM],
    make: Callable[[LlamaForCausalLM], Callable[[], torch.Tensor]],
    options: argparse.Namespace,
) -> Dict[str, float]:
    """Times of what `make` gives of each model, and the error of the sparse one."""
    runs = {}
    for name, model in models.items():
        torch.manual_seed(options.seed + 1)  # the same tokens for all
        runs[name] = capture(make(model))
    expected, got = (runs[name]().clone().float() for name in ("dense", "sparse"))
    error = float((got - expected).norm() / expected.norm())
    if not error < 0.02:
        raise SystemExit(f"the outputs differ by {error:.3g} of their norm")
    return {"error": error, **compare(runs, options.repeats, options.seconds)}


def peak_bytes(model: LlamaForCausalLM, tokens: int) -> Optional[int]:
    """The most that is allocated for a model and one prefill; None on the CPU."""
    run = Prefill(model, tokens)
    if not torch.cuda.is_available():
        run()
        return None
    others = torch.cuda.memory_allocated() - tensor_bytes(model)
    run()  # after which kernels have what they keep beside the weights
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - others


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


def measure_pattern(pattern: str, options: argparse.Namespace) -> Dict[str, Any]:
    sparse, dense = make_model(options), make_model(options)
    said = make_sparse(sparse, pattern)
    copy_weights(sparse, dense)
    models = {"dense": dense, "sparse": sparse}
    memory = measure_bytes(models, options)
    print(pattern, memory, flush=True)
    if pattern in options.compiled and not options.tiny:
        compiled = make_model(options)
        copy_weights(sparse, compiled)
        compiled.model.forward = torch.compile(compiled.model.forward, dynamic=False)
        models[COMPILED] = compiled
    rows = []
    draw = random.Random(options.seed)
    drawn = [draw.randint(1, 4096) for _ in range(options.drawn)]
    with torch.no_grad():
        for tokens in (*PREFILL, *drawn) if not options.tiny else (5, 64):
            chosen = dict(models)
            if tokens != PREFILL[1]:
                chosen.pop(COMPILED, None)
            row = measure(chosen, lambda m, t=tokens: Prefill(m, t), options)
            rows.append({"kind": "prefill", "tokens": tokens, **row})
            print(pattern, rows[-1], flush=True)
        for batch in DECODE:
            chosen = dict(models)
            if batch != DECODE[0]:
                chosen.pop(COMPILED, None)
            row = measure(
                chosen, lambda m, b=batch: Decode(m, b, options.context), options
            )
            rows.append({"kind": "decode", "batch": batch, **row})
            print(pattern, rows[-1], flush=True)
    return {"pattern": pattern, "bytes": memory, "said": said, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--pattern", action="append")
    # Zeros of a dense model cost what other weights cost, and each number of tokens is
    # compiled anew: one pattern, one number of each kind.
    parser.add_argument("--compiled", nargs="*", default=[PATTERNS[0]])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--drawn", type=int, default=8)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    about: Dict[str, Any] = {
        "gpu": "none" if options.tiny else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "library": nm.library.version() if nm.library.available() else "none",
        "options": vars(options),
        "patterns": [],
    }
    for pattern in options.pattern or PATTERNS:
        about["patterns"].append(measure_pattern(pattern, options))
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
