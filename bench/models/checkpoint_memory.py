#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of converting and loading a checkpoint at the size of Llama-3-8B.

usage: checkpoint_memory.py --json OUT [--folder DIR] [--layers N]
                            [--kinds bf16 e4m3] [--tiny]

Writes a dense checkpoint of bf16, 16 GB in files of one block each, in DIR (a temporary
folder), makes a sparse one of it by `convert_pretrained`, and loads that by
`from_pretrained` on the CPU: each in a process of its own, whose anonymous memory is
read every few milliseconds. Pages of mapped files, which the system takes back when it
needs them, do not count. What stays is what a process holds in the end, or, of a
conversion, in the beginning, when transformers has built the model without weights,
whose code stays. The largest layer is a dense one of 14336 x 4096.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict

HIDDEN, INNER, PAIRS, HEAD = 4096, 14336, 8, 128
VOCABULARY = 128256


def anonymous() -> int:
    """Bytes of this process."""
    text = Path("/proc/self/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) << 10


class Peak:
    """The most anonymous memory since it was made."""

    def __init__(self) -> None:
        self.begin = self.most = anonymous()
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_done.wait(0.003):
            self.most = max(self.most, anonymous())

    def stop(self) -> int:
        self._is_done.set()
        self._thread.join()
        return self.most


def make_config(options: argparse.Namespace) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=HIDDEN // 16 if options.tiny else HIDDEN,
        intermediate_size=INNER // 16 if options.tiny else INNER,
        num_attention_heads=32,
        num_key_value_heads=PAIRS,
        num_hidden_layers=options.layers,
        vocab_size=1024 if options.tiny else VOCABULARY,
        tie_word_embeddings=False,
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )


def write_dense(folder: Path, options: argparse.Namespace) -> None:
    """All blocks have the same weights: that saves minutes, and changes no memory."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    config = make_config(options)
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    with torch.device("meta"):
        shapes = {
            name: tensor.shape
            for name, tensor in AutoModelForCausalLM.from_config(config)
            .state_dict()
            .items()
        }
    first = {
        name: torch.randn(shape, dtype=torch.bfloat16) * 0.02
        for name, shape in shapes.items()
        if ".layers." not in name or ".layers.0." in name
    }
    where = {}
    for layer in range(options.layers):
        own = {
            name.replace(".layers.0.", f".layers.{layer}."): tensor
            for name, tensor in first.items()
            if ".layers." in name
        }
        where.update(dict.fromkeys(own, f"block-{layer}.safetensors"))
        save_file(own, folder / f"block-{layer}.safetensors", {"format": "pt"})
    rest = {name: tensor for name, tensor in first.items() if ".layers." not in name}
    where.update(dict.fromkeys(rest, "rest.safetensors"))
    save_file(rest, folder / "rest.safetensors", {"format": "pt"})
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def convert(source: Path, target: Path, kind: str) -> Dict[str, float]:
    from nm_sparse import Checkpoint
    from nm_sparse.torch import convert_pretrained
    from nm_sparse.torch.pretrained.convert import find_structure

    find_structure(Checkpoint(source))
    more = {} if kind == "bf16" else dict(weights=kind, activations=kind)
    layers = {"lm_head": None}
    peak, start = Peak(), time.time()
    convert_pretrained(source, target, "2:4", layers, progress=False, **more)
    seconds = time.time() - start
    above, stays = peak.stop() - peak.begin, anonymous()
    return {"above": above, "stays": stays, "seconds": seconds}


def load(target: Path) -> Dict[str, float]:
    from transformers import AutoModelForCausalLM

    import nm_sparse.torch  # noqa: F401  registers the format

    peak, start = Peak(), time.time()
    model = AutoModelForCausalLM.from_pretrained(target, dtype="bfloat16")
    seconds = time.time() - start
    most, stays = peak.stop(), anonymous()
    tensors = (*model.parameters(), *model.buffers())
    held = sum(one.nbytes for one in tensors)
    return {"above": most - stays, "stays": stays, "model": held, "seconds": seconds}


def _run(out: Any, work: Callable[..., Any], arguments: Any) -> None:
    out.put(work(*arguments))


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a process of its own."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=_run, args=(out, work, arguments))
    process.start()
    found = out.get()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--kinds", nargs="+", default=["bf16", "e4m3"])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    scale = 16 if options.tiny else 1
    largest = 2 * (HIDDEN // scale) * (INNER // scale)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        dense = Path(folder, "dense")
        write_dense(dense, options)
        size = sum(file.stat().st_size for file in dense.iterdir())
        about: Dict[str, Any] = {"bytes": size, "largest layer": largest, "kinds": {}}
        for kind in options.kinds:
            target = Path(folder, kind)
            row = {"convert": apart(convert, dense, target, kind)}
            row["load"] = apart(load, target)
            shutil.rmtree(target)
            for step in row.values():
                step["above / largest layer"] = round(step["above"] / largest, 3)
            about["kinds"][kind] = row
            print(kind, row, flush=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
