# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiny models of transformers with random weights, for tests."""

import json

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from nm_sparse.torch import NMLinear

TOKENS = torch.arange(8)[None] % 50
SIZES = dict(
    vocab_size=160, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip


def llama(seed=0, **changes):
    """A Llama in f32, ready to be called."""
    sizes = {**SIZES, "num_key_value_heads": 2, **changes}
    return built(transformers.LlamaForCausalLM, transformers.LlamaConfig(**sizes), seed)


def built(kind, config, seed=0):
    torch.manual_seed(seed)
    return kind(config).eval()


def configs():
    """(class, config) of several architectures, by name."""
    grouped = {**SIZES, "num_key_value_heads": 2}
    t = transformers
    return {
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**grouped)),
        "tied": (t.LlamaForCausalLM,
                 t.LlamaConfig(**grouped, tie_word_embeddings=True)),
        "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**grouped)),
        "mixtral": (t.MixtralForCausalLM,
                    t.MixtralConfig(**grouped, num_local_experts=3)),
        "phi3": (t.Phi3ForCausalLM, t.Phi3Config(**grouped)),
        "neox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**SIZES)),
        "bert": (t.BertForMaskedLM, t.BertConfig(**SIZES)),
    }  # fmt: skip


def packed_layers(model):
    """Names of its packed layers."""
    return [n for n, one in model.named_modules() if isinstance(one, NMLinear)]


def pack(model, encoding="2:4", leave=()):
    """Puts packed layers in the place of all linear ones that share no weight."""
    tied = {key.rpartition(".")[0] for key in model.all_tied_weights_keys}
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear and name not in tied and name not in leave:
            parent, _, attribute = name.rpartition(".")
            layer = NMLinear.from_dense(module, encoding)
            setattr(model.get_submodule(parent), attribute, layer)
    return model


def logits(model, tokens=TOKENS):
    with torch.no_grad():
        return model(tokens).logits


def copied(saved, tmp_path):
    """The tensors of a copy of the folder in one file, to be changed."""
    folder = tmp_path / "m"
    folder.mkdir()
    tensors = {}
    for path in saved[1].glob("*.safetensors"):
        tensors.update(load_file(path))
    config = json.loads((saved[1] / "config.json").read_text())
    return folder, tensors, config


def write(folder, tensors, config):
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    return folder
