#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of models that are loaded by name: dense, 8 bits and 2:4, compiled by torch.

usage: loaded_blocks.py --json OUT [--models NAME...] [--layers N] [--tokens N...]
                        [--drawn N] [--sequences N...] [--patience SECONDS] [--tiny]

Of each architecture a dense checkpoint of bf16 with random weights is written, made
sparse by `convert_pretrained`, and loaded by `from_pretrained`; then `fuse_` and
`store_for_kernels_` prepare it for inference. Four models are compared:

    bf16         dense
    fp8          dense, e4m3: compiled quantization of x for each token, and
                 torch._scaled_mm with scales of tokens and outputs
    sparse bf16  2:4
    sparse fp8   2:4, e4m3, activations too

All go through torch.compile and become CUDA graphs, which are timed in turn: prefill
of one sequence, whose tokens are counted, and decoding of some sequences of one new
token behind --context tokens. BERT has sequences of 128 tokens. Outputs of sparse
models are compared with those of dense ones that have the same weights and zeros.

Each architecture is prepared by a process of its own, all at the same time; nothing is
timed before all are ready, and then one after the other. --tiny checks the script on
the CPU, without times that mean anything.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import multiprocessing
import random
import statistics
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import torch
import transformers
from cuda_graphs import capture, microseconds
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from nm_sparse.bindings import library
from nm_sparse.torch import (
    NMLinear,
    convert_pretrained,
    fuse_,
    quantize_tokens,
    store_for_kernels_,
)

BF16, FP8 = "bf16", "fp8"
SPARSE = {BF16: f"sparse {BF16}", FP8: f"sparse {FP8}"}
LENGTH = 128  # tokens of a sequence of BERT
# The largest legal difference from the exact result, as a part of its norm. With 8
# bits, what rounding does to a dense model is allowed for, and a tenth of it.
LIMIT = 0.02
_VOCABULARY = 1024


def _sizes(hidden: int, inner: int, heads: int, pairs: int = 0) -> Dict[str, int]:
    own = dict(hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads)
    return {**own, "num_key_value_heads": pairs} if pairs else own


# Each has the class of its configuration, that of its models, and sizes.
MODELS: Dict[str, Tuple[str, str, Dict[str, Any]]] = {
    "Llama-8B": ("LlamaConfig", "CausalLM", _sizes(4096, 14336, 32, 8)),
    "Qwen2-7B": ("Qwen2Config", "CausalLM", _sizes(3584, 18944, 28, 4)),
    # As later versions, without a window: caches of windows count calls.
    "Mistral-7B": (
        "MistralConfig",
        "CausalLM",
        {**_sizes(4096, 14336, 32, 8), "sliding_window": None},
    ),
    "Phi-3": ("Phi3Config", "CausalLM", _sizes(3072, 8192, 32, 32)),
    "NeoX-20B": ("GPTNeoXConfig", "CausalLM", _sizes(6144, 24576, 64)),
    "BERT-large": ("BertConfig", "MaskedLM", _sizes(1024, 4096, 16)),
}


# No token of an encoder is padding here. Some versions of transformers make a mask in
# compiled graphs nevertheless, with which torch computes attention in f32.
_UNMASKED = "sdpa without masks"
transformers.AttentionInterface.register(_UNMASKED, sdpa_attention_forward)


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def make_dense(name: str, options: argparse.Namespace) -> Any:
    kind, head, sizes = MODELS[name]
    if options.tiny:
        sizes = dict(_sizes(128, 256, 4), **({"num_key_value_heads": 2}
                     if "num_key_value_heads" in sizes else {}))  # fmt: skip
    config = getattr(transformers, kind)(
        **sizes,
        num_hidden_layers=options.layers,
        vocab_size=_VOCABULARY,
        max_position_embeddings=8192,
        **dict(pad_token_id=0, bos_token_id=1, eos_token_id=2),
    )
    torch.manual_seed(options.seed)
    with torch.device(device()):
        torch.set_default_dtype(torch.bfloat16)
        made = getattr(transformers, f"AutoModelFor{head}").from_config(config)
        torch.set_default_dtype(torch.float32)
    return made.eval()


class Fp8Linear(nn.Module):
    """A dense layer of e4m3 elements with a scale for each output."""

    def __init__(self, weight: Tensor, bias: Any) -> None:
        super().__init__()
        elements, scale = quantize_tokens(weight)
        self.register_buffer("weight", elements)
        self.register_buffer("scale", scale.view(1, -1))
        self.register_buffer("bias", None if bias is None else bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        # As users of torch write it, for torch.compile.
        numbers = x.float()
        x_scale = numbers.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448.0
        rows = (numbers / x_scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        rows, x_scale = rows.flatten(0, -2), x_scale.flatten(0, -2)
        if rows.is_cuda:
            y = torch._scaled_mm(
                rows, self.weight.t(), scale_a=x_scale, scale_b=self.scale,
                out_dtype=torch.bfloat16, use_fast_accum=True,
            )  # fmt: skip
        else:
            y = rows.float() @ self.weight.float().t() * x_scale * self.scale
        if self.bias is not None:
            y = y + self.bias
        return y.to(torch.bfloat16).view(*x.shape[:-1], -1)


def with_fp8(model: Any) -> Any:
    """A copy whose blocks have layers of 8 bits."""
    made = copy.deepcopy(model)
    for name, layer in list(made.base_model.named_modules()):
        if isinstance(layer, nn.Linear) and "layer" in name:
            parent, _, attribute = name.rpartition(".")
            setattr(made.base_model.get_submodule(parent), attribute,
                    Fp8Linear(layer.weight, layer.bias))  # fmt: skip
    return made


def masked(dense: Any, sparse: Any) -> Any:
    """The dense model with the weights of the sparse one, and its zeros."""
    made = copy.deepcopy(dense)
    for name, layer in sparse.named_modules():
        if isinstance(layer, NMLinear):
            weight = layer.weight.to_dense()
            made.get_submodule(name).weight.data.copy_(weight)
    return made


def difference(found: Tensor, wanted: Tensor) -> float:
    """Norm of the difference over that of what is wanted."""
    return float((found - wanted).norm() / wanted.norm())


def load_sparse(dense: Any, kind: str, folder: str, head: str) -> Tuple[Any, str]:
    """The model as a user gets it, and what was done, for people."""
    source, target = Path(folder, "dense"), Path(folder, kind)
    if not source.exists():
        dense.save_pretrained(source)
    more = {} if kind == BF16 else dict(weights="e4m3", activations="e4m3")
    head_layers = {"lm_head": None, "embed_out": None, "cls.*": None}
    known = {name for name, one in dense.named_modules() if isinstance(one, nn.Linear)}
    layers = {one: None for one in head_layers if one in known or one == "cls.*"
              and any(name.startswith("cls.") for name in known)}  # fmt: skip
    convert_pretrained(source, target, "2:4", layers, progress=False, **more)
    kind_of = getattr(transformers, f"AutoModelFor{head}")
    made = kind_of.from_pretrained(target, dtype=torch.bfloat16, device_map=device())
    made.eval()
    said = str(fuse_(made))
    if device() == "cuda":
        said += f"\n{store_for_kernels_(made)}"
    return made, said


class Prefill:
    """One pass over the blocks: of one sequence, or of several of LENGTH tokens."""

    def __init__(self, model: Any, tokens: int, is_encoder: bool) -> None:
        self.model, self.is_encoder = model, is_encoder
        shape = (max(1, tokens // LENGTH), LENGTH) if is_encoder else (1, tokens)
        self.ids = torch.randint(3, _VOCABULARY, shape, device=device())

    def __call__(self) -> Tensor:
        own = {} if self.is_encoder else dict(use_cache=False)
        return self.model.run(input_ids=self.ids, **own).last_hidden_state


class Decode:
    """One new token of each of `batch` sequences, behind `context` tokens."""

    def __init__(self, model: Any, batch: int, context: int) -> None:
        self.model, self.context = model, context
        config = model.config
        self.cache = transformers.StaticCache(config=config, max_cache_len=context + 1)
        names = inspect.signature(model.base_model.forward).parameters
        # The second name is that of earlier versions of transformers.
        key = "cache" if "cache" in names else "past_key_values"
        self.known = {key: self.cache}
        ids = torch.randint(3, _VOCABULARY, (batch, context), device=device())
        model.base_model(ids, use_cache=True, **self.known)
        self.ids = ids[:, :1].contiguous()
        self.position = torch.tensor([context], device=device())
        self.positions = self.position[None].expand(batch, 1).contiguous()

    def __call__(self) -> Tensor:
        for layer in self.cache.layers:  # which count what they hold
            layer.cumulative_length.fill_(self.context)
        return self.model.run(
            input_ids=self.ids,
            use_cache=True,
            **self.known,
            cache_position=self.position,
            position_ids=self.positions,
        ).last_hidden_state


Make = Callable[[Any], Callable[[], Tensor]]


class Architecture:
    """The four models of one architecture, their graphs and errors."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options, self.start = name, options, time.time()
        head = MODELS[name][1]
        self.is_encoder = head == "MaskedLM"
        dense = make_dense(name, options)
        self.models = {BF16: dense, FP8: with_fp8(dense)}
        self.exact: Dict[str, Any] = {}
        self.said: Dict[str, str] = {}
        with tempfile.TemporaryDirectory() as folder:
            for kind in (BF16, FP8):
                sparse, self.said[kind] = load_sparse(dense, kind, folder, head)
                self.models[SPARSE[kind]] = sparse
                self.exact[kind] = masked(dense, sparse)
        self.exact["rounded"] = with_fp8(self.exact[FP8])
        for model in (*self.models.values(), *self.exact.values()):
            if self.is_encoder:
                model.set_attn_implementation(_UNMASKED)
            model.run = model.base_model.forward
        for model in self.models.values():
            # This compiles the whole forward pass. It does not replace the function,
            # or `Decode` would compile what is not timed.
            model.run = torch.compile(model.run)

    def cases(self) -> List[Tuple[str, int, Make]]:
        options, found = self.options, []
        draw = random.Random(options.seed)
        drawn = [draw.randint(1, 4096) for _ in range(options.drawn)]
        for tokens in (*options.tokens, *drawn):
            if self.is_encoder:
                tokens = max(1, tokens // LENGTH) * LENGTH
            found.append(("prefill", tokens, self._prefill(tokens)))
        for batch in () if self.is_encoder else options.sequences:
            found.insert(1, ("decode", batch, self._decode(batch)))
        return found

    def _prefill(self, tokens: int) -> Make:
        return lambda model: Prefill(model, tokens, self.is_encoder)

    def _decode(self, batch: int) -> Make:
        return lambda model: Decode(model, batch, self.options.context)

    @torch.no_grad()
    def prepare(self) -> None:
        """Compiles and captures everything, and compares it."""
        pool = torch.cuda.graph_pool_handle() if device() == "cuda" else None
        self.rows: List[Tuple[Dict[str, Any], Dict[str, Any]]] = []
        for kind, count, make in self.cases():
            if time.time() - self.start > self.options.patience:
                print(f"{self.name}: no time for {kind} of {count}", flush=True)
                continue
            graphs, results = {}, {}
            for name, model in {**self.models, **self.exact_models()}.items():
                torch.manual_seed(self.options.seed + count)
                run = make(model)
                if name in self.models:
                    graphs[name] = capture(run, pool)
                    results[name] = graphs[name]().float()
                else:
                    results[name] = run().float()
            errors = {
                name: round(difference(results[name], results[f"exact {of}"]), 5)
                for of, name in ((BF16, SPARSE[BF16]), (FP8, SPARSE[FP8]),
                                 (FP8, "exact rounded"))
            }  # fmt: skip
            limit = LIMIT + 1.1 * errors["exact rounded"]
            if not (errors[SPARSE[BF16]] < LIMIT and errors[SPARSE[FP8]] < limit):
                raise SystemExit(f"{kind} of {count}: errors {errors}")
            self.rows.append(({"kind": kind, "count": count, "errors": errors}, graphs))
            print(self.name, self.rows[-1][0], flush=True)

    def exact_models(self) -> Dict[str, Any]:
        return {f"exact {kind}": model for kind, model in self.exact.items()}

    def measure(self) -> Dict[str, Any]:
        """Microseconds of a block, median of runs in turn."""
        options = self.options
        rows = []
        for row, graphs in self.rows:
            found: Dict[str, List[float]] = {name: [] for name in graphs}
            for _ in range(options.repeats):
                for name, run in graphs.items():
                    found[name].append(microseconds(run, options.seconds))
            us = {
                name: round(statistics.median(each) / options.layers, 2)
                for name, each in found.items()
            }
            rows.append({**row, "us": us})
            print(self.name, rows[-1], flush=True)
        return {"model": self.name, "said": self.said, "rows": rows}


def work(
    name: str, options: argparse.Namespace, ready: Any, turn: Any, out: Any
) -> None:
    torch._dynamo.config.recompile_limit = 64
    try:
        made = Architecture(name, options)
        made.prepare()
        problem = ""
    except BaseException:  # whatever it is, the others go on
        problem = traceback.format_exc()
    ready.wait()
    if problem:
        out.put({"model": name, "problem": problem})
        return
    with turn:
        out.put(made.measure())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=[*MODELS])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048, 4096])
    parser.add_argument("--drawn", type=int, default=8)
    parser.add_argument("--sequences", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--patience", type=float, default=1e9, metavar="SECONDS",
                        help="after which no further rows are prepared")  # fmt: skip
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        options.tokens, options.drawn, options.context = [5, 256], 1, 8
        options.repeats, options.seconds, options.sequences = 1, 0.001, [1, 3]
    about: Dict[str, Any] = {
        "gpu": torch.cuda.get_device_name() if device() == "cuda" else "none",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "library": library.version() if library.available() else "none",
        "options": vars(options),
        "models": [],
    }
    context = multiprocessing.get_context("spawn")
    ready, turn = context.Barrier(len(options.models)), context.Lock()
    out = context.Queue()
    workers = [
        context.Process(target=work, args=(name, options, ready, turn, out))
        for name in options.models
    ]
    for one in workers:
        one.start()
    problems = []
    for _ in workers:
        found = out.get()
        if "problem" in found:
            problems.append(f"{found['model']}:\n{found['problem']}")
            continue
        about["models"].append(found)
        Path(options.json).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    for one in workers:
        one.join()
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
