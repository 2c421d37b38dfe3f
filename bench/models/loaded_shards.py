#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed models that `from_pretrained` loads whole, and in shards on several GPUs.

usage: torchrun --nproc-per-node N loaded_shards.py --json OUT [--tiny]

Each model has two blocks at the sizes of the real one, random weights, and is converted
to 2:4, in bf16 and in e4m3. Rank 0 writes the checkpoints; each process then loads one
whole and, by a plan of tensor parallel, its own part. Logits of prompts are compared,
and the tokens that both choose. --tiny checks the script on CPUs, with gloo.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import tempfile
import time
from typing import Any, Dict, Iterable

import torch
import torch.distributed as dist
import transformers
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers.distributed import DistributedConfig

from nm_sparse.bindings import library
from nm_sparse.torch import NMLinear, convert_pretrained

MODELS: Dict[str, Dict[str, Any]] = {
    "Llama": dict(intermediate_size=14336, num_key_value_heads=8),
    "Qwen2": dict(
        hidden_size=3584,
        intermediate_size=18944,
        num_attention_heads=28,
        num_key_value_heads=4,
    ),
    "Phi3": dict(hidden_size=3072, pad_token_id=0, eos_token_id=1),
}
USUAL = dict(
    hidden_size=4096,
    intermediate_size=8192,
    num_attention_heads=32,
    num_key_value_heads=32,
    num_hidden_layers=2,
    vocab_size=4096,
    max_position_embeddings=4096,
)
TINY = dict(
    hidden_size=256,
    intermediate_size=512,
    num_attention_heads=8,
    num_key_value_heads=4,
    vocab_size=512,
)


def config_of(name: str, is_tiny: bool) -> Any:
    sizes = {**USUAL, **MODELS[name], **(TINY if is_tiny else {})}
    return getattr(transformers, name + "Config")(**sizes)


def write(config: Any, folder: pathlib.Path, device: torch.device) -> None:
    torch.manual_seed(3)
    with device:
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16
        )
    model.save_pretrained(folder / "dense")
    for elements in (None, "e4m3"):
        more = {} if elements is None else dict(weights=elements, activations=elements)
        to = folder / str(elements)
        own: Dict[str, Any] = {"lm_head": None}
        convert_pretrained(folder / "dense", to, "2:4", own, progress=False, **more)


def load(folder: pathlib.Path, **more: Any) -> Any:
    of = transformers.AutoModelForCausalLM
    return of.from_pretrained(folder, dtype=torch.bfloat16, **more)


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distance(one: Tensor, other: Tensor) -> float:
    one, other = whole(one).float(), whole(other).float()
    return round(float((one - other).norm() / other.norm()), 5)


def own_bytes(parameters: Iterable[Tensor]) -> int:
    own = (one.to_local() if isinstance(one, DTensor) else one for one in parameters)
    return sum(one.nbytes for one in own)


@torch.no_grad()
def compare(
    folder: pathlib.Path, vocabulary: int, device: torch.device, is_tiny: bool
) -> Dict[str, Any]:
    one = load(folder, device_map={"": device})
    start = time.perf_counter()
    part = load(folder, distributed_config=DistributedConfig(tp_plan="auto"))
    seconds = time.perf_counter() - start
    layers = [layer for layer in part.modules() if isinstance(layer, NMLinear)]
    sharded = sum(isinstance(layer.weight, DTensor) for layer in layers)
    prompts = {}
    for tokens in (1, 30, 64) if is_tiny else (1, 300, 2048):
        torch.manual_seed(tokens)
        prompts[tokens] = torch.randint(3, vocabulary, (1, tokens), device=device)
    differences = {
        tokens: distance(part(ids).logits, one(ids).logits)
        for tokens, ids in prompts.items()
    }
    torch.manual_seed(64)
    ids = torch.randint(3, vocabulary, (1, 64), device=device)
    own = dict(min_new_tokens=16, max_new_tokens=16, do_sample=False, pad_token_id=0)
    same = one.generate(ids, **own) == part.generate(ids, **own)
    sizes = [own_bytes(model.parameters()) for model in (one, part)]
    return {
        "layers": len(layers),
        "sharded": sharded,
        "difference": differences,
        "same_new_tokens": int(same[0, 64:].sum()),
        "seconds_to_load": round(seconds, 2),
        "bytes": sizes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cpu")
    if options.tiny:
        dist.init_process_group("gloo")
    else:
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    name = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name, 0)
    assert name[0] is not None
    rows = []
    for model in options.models:
        config = config_of(model, options.tiny)
        folder = pathlib.Path(name[0]) / model
        if rank == 0:
            write(config, folder, device)
        dist.barrier()
        for elements in (None, "e4m3"):
            found = compare(
                folder / str(elements), config.vocab_size, device, options.tiny
            )
            rows.append({"model": model, "elements": elements or "bf16", **found})
            if rank == 0:
                print(rows[-1], flush=True)
    if rank == 0:
        about = {
            "gpu": None if options.tiny else torch.cuda.get_device_name(),
            "gpus": dist.get_world_size(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "library": library.version(),
            "rows": rows,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
            file.write("\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
