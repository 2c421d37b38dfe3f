#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Continuous batching of transformers: tokens per second of dense and packed models.

usage: serving.py --json OUT [--layers N] [--requests N] [--new N] [--prompts LOW HIGH]
                  [--rounds N] [--graphs on|off|auto] [--seed S] [--tiny]

A Llama with layers of the sizes of 8B, a fourth of its vocabulary and random weights is
saved as bf16, and made sparse by `convert_pretrained`. Each folder is loaded by
`from_pretrained` and answers the same requests by `generate_batch`:

    dense            bf16
    2:4              packed, bf16
    2:4, e4m3        packed, weights and inputs of 8 bits
    ..., prepared    after `fuse_`, `store_for_kernels_` and, of bf16, `use_dense_`

Prompts have drawn lengths; tokens are chosen greedily, and no request ends early. Time
is from the first request to the last token, after a warm-up with other prompts of the
same lengths; each round goes through all models. Steps are CUDA graphs unless --graphs
says otherwise; auto is what transformers chooses for its attention.

Before anything is timed, the tokens of packed models are compared with those of the
dense model that has the same zeros: random weights make many tokens nearly as likely as
the first, so a few differ, and what follows them. --tiny checks the script on the CPU,
without times that mean anything.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import logging
import random
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch
import transformers

from nm_sparse.bindings import library
from nm_sparse.torch import (
    NMLinear,
    convert_pretrained,
    fuse_,
    store_for_kernels_,
    use_dense_,
)

DENSE, SPARSE, NARROW = "dense", "2:4", "2:4, e4m3"
PREPARED = ", prepared"
# At least this share of first tokens must be those of the dense model with zeros.
AGREEMENT = {SPARSE: 0.8, NARROW: 0.4}

Prompts = List[List[int]]


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype_of(options: argparse.Namespace) -> torch.dtype:
    return torch.float32 if options.tiny else torch.bfloat16


def save_models(options: argparse.Namespace, folder: Path) -> Dict[str, Path]:
    """The folders of the dense model and of those that are made of it."""
    sizes = (256, 512, 4, 2, 512) if options.tiny else (4096, 14336, 32, 8, 32064)
    names = (
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "vocab_size",
    )
    config = transformers.LlamaConfig(
        **dict(zip(names, sizes)),
        num_hidden_layers=options.layers,
        max_position_embeddings=8192,
    )
    torch.manual_seed(options.seed)
    with torch.device(device()):
        torch.set_default_dtype(dtype_of(options))
        model = transformers.LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    folders = {DENSE: folder / "dense", SPARSE: folder / "2-4", NARROW: folder / "e4m3"}
    model.save_pretrained(folders[DENSE])
    del model
    narrow = dict.fromkeys(("weights", "activations"), "e4m3")
    for name, more in ((SPARSE, {}), (NARROW, narrow)):
        start = time.perf_counter()
        own = folders[DENSE], folders[name], "2:4", {"lm_head": None}
        convert_pretrained(*own, progress=False, **more)
        print(f"{name}: made in {time.perf_counter() - start:.0f} s", flush=True)
    return folders


def load(path: Path, options: argparse.Namespace) -> Any:
    place = {"device_map": device()} if find_spec("accelerate") else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=dtype_of(options), **place
    )
    return model.to(device()).eval()


def call(model: Any, options: argparse.Namespace) -> None:
    """Has kernels compiled, and weights in their form, before a graph is captured."""
    for tokens in (1, options.requests, options.batch_tokens):
        model(torch.zeros(1, tokens, dtype=torch.int64, device=device()))


def prepare(model: Any, name: str) -> str:
    """Makes a model faster for inference; what was done, for people."""
    said = [str(fuse_(model))]
    if device() == "cuda":
        if not name.startswith(NARROW):
            said.append(str(use_dense_(model)))
        said.append(str(store_for_kernels_(model)))
    return "\n".join(said)


def draw_prompts(options: argparse.Namespace, vocabulary: int, seed: int) -> Prompts:
    """Of lengths that do not depend on the seed, so that all rounds do the same."""
    lengths = random.Random(options.seed)
    tokens = random.Random(seed)
    low, high = options.prompts
    return [
        [tokens.randrange(3, vocabulary) for _ in range(lengths.randint(low, high))]
        for _ in range(options.requests)
    ]


class Server:
    """Calls `generate_batch` of a model, whose names differ between versions."""

    def __init__(self, model: Any, options: argparse.Namespace) -> None:
        self.model, self.options = model, options
        call(model, options)
        self.generation = transformers.GenerationConfig(
            max_new_tokens=options.new,
            do_sample=False,
            eos_token_id=-1,  # which ends no request
            pad_token_id=0,
        )
        known = inspect.signature(model.generate_batch).parameters
        self.more: Dict[str, Any] = {
            name: True
            for name in ("persistent_manager", "record_timestamps")
            if name in known
        }
        if "continuous_batching_config" in known:
            self.more["continuous_batching_config"] = self._config()

    def _config(self) -> Any:
        """Room for all requests at once, and no answers from another prompt's cache."""
        kind = transformers.ContinuousBatchingConfig
        known = inspect.signature(kind).parameters
        made, options = kind(), self.options
        page = getattr(made, "page_size", None) or getattr(made, "block_size", 0) or 32
        longest = options.prompts[1] + options.new
        wanted: Dict[str, Any] = {
            "num_blocks": options.requests * (longest // page + 2),
            "max_batch_tokens": options.batch_tokens,
            "allow_block_sharing": False,
        }
        if device() == "cuda" and options.graphs != "auto":
            wanted["use_cuda_graph"] = options.graphs == "on"
            # Graphs of attention that is given a mask read all of the padding.
            wanted["kv_padding_interval_size"] = 4096
        return kind(**{k: x for k, x in wanted.items() if k in known and x is not None})

    def run(self, prompts: Prompts) -> List[Any]:
        results = self.model.generate_batch(
            prompts, generation_config=self.generation, **self.more
        )
        found = list(results.values())
        errors = {str(one.error) for one in found if one.error is not None}
        counts = {len(one.generated_tokens) for one in found}
        if errors or len(found) != len(prompts) or counts != {self.options.new}:
            raise SystemExit(
                f"{len(found)} answers of {counts} tokens, errors {errors}"
            )
        return found

    def tokens(self, prompts: Prompts) -> Prompts:
        return [list(one.generated_tokens) for one in self.run(prompts)]

    def seconds(self, prompts: Prompts) -> float:
        """From the first request to the last token."""
        start = time.perf_counter()
        found = self.run(prompts)
        wall = time.perf_counter() - start
        stamps = [at for one in found for at in getattr(one, "timestamps", None) or ()]
        if not stamps:
            return wall
        return max(stamps) - min(one.created_time for one in found)

    def close(self) -> None:
        destroy = getattr(
            self.model, "destroy_cached_continuous_batching_manager", None
        )
        if destroy is not None:
            destroy()


def free() -> None:
    gc.collect()
    if device() == "cuda":
        torch.cuda.empty_cache()


def tensor_bytes(model: Any) -> int:
    return sum(part.nbytes for part in (*model.parameters(), *model.buffers()))


def answers(make: Callable[[], Any], options: argparse.Namespace) -> Prompts:
    """The tokens of a model for the first prompts."""
    model = make()
    server = Server(model, options)
    prompts = draw_prompts(options, model.config.vocab_size, options.seed)
    found = server.tokens(prompts)
    server.close()
    return found


def compare(found: Prompts, wanted: Prompts) -> Dict[str, float]:
    """How many first tokens are equal, and how long answers are, on average, until they
    differ, of their length."""
    first = [float(one[0] == other[0]) for one, other in zip(found, wanted)]
    shares = []
    for one, other in zip(found, wanted):
        same = [a == b for a, b in zip(one, other)]
        shares.append((same.index(False) if False in same else len(same)) / len(same))
    return {"first": statistics.mean(first), "until": statistics.mean(shares)}


def masked(dense: Any, packed: Any) -> Any:
    """The dense model with the weights of the packed one, and its zeros."""
    for name, module in packed.named_modules():
        if isinstance(module, NMLinear):
            weight = module.weight.to_dense().detach()
            dense.get_submodule(name).weight.data.copy_(weight)
    return dense


def check(folders: Dict[str, Path], options: argparse.Namespace) -> Dict[str, Any]:
    """Compares the tokens of packed models with those of dense ones."""
    rows: Dict[str, Any] = {}

    def packed(name: str, is_prepared: bool) -> Any:
        model = load(folders[name], options)
        if is_prepared:
            prepare(model, name)
        return model

    def exact(name: str) -> Any:
        return masked(load(folders[DENSE], options), load(folders[name], options))

    for name in (SPARSE, NARROW):
        wanted = answers(lambda n=name: exact(n), options)
        free()
        for ready in (False, True):
            found = answers(lambda n=name, r=ready: packed(n, r), options)
            free()
            same = rows[name + PREPARED * ready] = compare(found, wanted)
            print(name + PREPARED * ready, same, flush=True)
            if not same["first"] >= AGREEMENT[name]:
                raise SystemExit(f"{name}: too few tokens are those of zeros: {same}")
    return rows


def measure(
    path: Path, name: str, is_prepared: bool, options: argparse.Namespace, turn: int
) -> Dict[str, Any]:
    """Tokens per second of one round, and what was loaded."""
    start = time.perf_counter()
    model = load(path, options)
    row: Dict[str, Any] = {"load_s": time.perf_counter() - start}
    row["said"] = prepare(model, name) if is_prepared else ""
    server = Server(model, options)
    vocabulary = model.config.vocab_size
    server.run(draw_prompts(options, vocabulary, -1 - turn))
    seconds = [
        server.seconds(draw_prompts(options, vocabulary, 100 * turn + at))
        for at in range(options.repeats)
    ]
    row["attention"] = getattr(model.config, "_attn_implementation", "")
    server.close()
    row["bytes"] = tensor_bytes(model)
    row["tokens_per_s"] = [options.requests * options.new / one for one in seconds]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--prompts", type=int, nargs=2, default=[16, 256])
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--graphs", choices=("auto", "on", "off"), default="on")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        options.layers, options.requests, options.new = 2, 6, 8
        options.prompts, options.batch_tokens = [4, 20], 64
        options.rounds = options.repeats = 1
    logging.getLogger("ContinuousBatchingLogger").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    about: Dict[str, Any] = {
        "gpu": "none" if device() == "cpu" else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "library": library.version() if library.available() else "none",
        "options": {name: x for name, x in vars(options).items() if name != "json"},
    }
    runs = [(DENSE, False)]
    runs += [(name, ready) for name in (SPARSE, NARROW) for ready in (False, True)]
    rows: Dict[str, Dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folders = save_models(options, Path(folder))
        free()
        same = check(folders, options)
        for name, ready in runs:
            key = name + PREPARED * ready
            rows[key] = {"same": same.get(key), "tokens_per_s": []}
        for turn in range(options.rounds):
            for name, ready in runs:
                key = name + PREPARED * ready
                found = measure(folders[name], name, ready, options, turn)
                free()
                speeds = [*rows[key]["tokens_per_s"], *found["tokens_per_s"]]
                rows[key].update(found, tokens_per_s=speeds)
                print(turn, key, found["tokens_per_s"], flush=True)
    usual = statistics.median(rows[DENSE]["tokens_per_s"])
    for name, row in rows.items():
        row["median"] = statistics.median(row["tokens_per_s"])
        row["ratio"] = row["median"] / usual
        print(f"{name}: {row['median']:.0f} tokens/s, {row['ratio']:.2f}x", flush=True)
    about["models"] = rows
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
