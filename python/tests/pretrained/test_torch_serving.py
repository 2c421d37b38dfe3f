# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed models in transformers' continuous batching, and in its server."""

import inspect
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pretrained_cases import SIZES, llama, pack, packed_layers  # noqa: E402

import nm_sparse  # noqa: E402
from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.pretrained import mark_pretrained  # noqa: E402
from nm_sparse.torch.pretrained.quantizer import replace_module  # noqa: E402

AUTO = transformers.AutoModelForCausalLM
NEW = 6
PROMPTS = [[5, 6, 7, 8], [9, 10, 11], list(range(3, 40)), [7], [20, 30, 40, 50, 60]]


def save(folder, elements=None):
    model = pack(llama(), "2:4", leave=("lm_head",))
    for name in packed_layers(model) if elements else ():
        layer = model.get_submodule(name)
        made = NMLinear.from_packed(layer.weight.detach().quantize(elements))
        made.activations = elements
        replace_module(model, layer, made)
    mark_pretrained(model)
    model.save_pretrained(folder)


def generated(model, prompt):
    found = model.generate(
        torch.tensor([prompt]), max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False
    )
    return found[0, len(prompt) :].tolist()


def small_cache():
    """Room for the requests: by default it fills memory."""
    kind = transformers.ContinuousBatchingConfig
    sizes = dict(num_blocks=32, max_batch_tokens=32)
    return kind(
        **{k: x for k, x in sizes.items() if k in inspect.signature(kind).parameters}
    )


@pytest.mark.parametrize("elements", [None, "e4m3"])
def test_continuous_batching(tmp_path, elements):
    """More tokens than a batch has, so that requests come and go."""
    if not hasattr(transformers, "ContinuousBatchingConfig"):
        pytest.skip("transformers has no such continuous batching")
    save(tmp_path / "m", elements)
    model = AUTO.from_pretrained(tmp_path / "m")
    config = transformers.GenerationConfig(
        max_new_tokens=NEW, do_sample=False, eos_token_id=-1, pad_token_id=0
    )
    model.generation_config.eos_token_id = None
    wanted = [generated(model, prompt) for prompt in PROMPTS]
    results = model.generate_batch(
        PROMPTS, generation_config=config, continuous_batching_config=small_cache()
    )
    assert [one.error for one in results.values()] == [None] * len(PROMPTS)
    assert [one.generated_tokens for one in results.values()] == wanted


def make_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{i}": i for i in range(SIZES["vocab_size"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(pad_token="w0", bos_token="w1", eos_token="w2")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **special
    ).save_pretrained(folder)


def documented_command():
    """What runs the server, as docs/Checkpoints.md has it."""
    page = Path(__file__).parents[3] / "docs" / "Checkpoints.md"
    (code,) = re.findall(r'python -c "(.*?)" serve SPARSE', page.read_text())
    return [sys.executable, "-c", code, "serve"]


def ask(port, path, body=None):
    request = urllib.request.Request(
        f"http://localhost:{port}/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.mark.slow
def test_the_server(tmp_path):
    from transformers.utils import import_utils

    if not getattr(import_utils, "is_serve_available", lambda: False)():
        pytest.skip("needs transformers[serving]")
    folder = tmp_path / "m"
    save(folder)
    make_tokenizer(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = str(Path(nm_sparse.__file__).parents[1])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    own = ["--continuous-batching", "--cb-num-blocks", "16", "--device", "cpu"]
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(
            [*documented_command(), str(folder), "--port", str(port), *own],
            env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
            stdout=log,
            stderr=log,
        )
    try:
        for _ in range(120):
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                ask(port, "health")
                break
            except OSError:
                time.sleep(1)
        words = "w5 w6 w7 w8"
        body = dict(model=str(folder), prompt=words, max_tokens=NEW, temperature=0)
        text = ask(port, "v1/completions", body)["choices"][0]["text"]
    finally:
        server.terminate()
        server.wait()
    tokens = generated(AUTO.from_pretrained(folder), PROMPTS[0])
    # Special tokens are left out.
    assert text.split() == [f"w{i}" for i in tokens if i > 2]
