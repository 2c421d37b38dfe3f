# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small language model of Llama's architecture: text, training, losses."""

from __future__ import annotations

import math
import pathlib
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

LAYERS, BLOCKS = "model.layers.*", "model.layers"


@dataclass
class Text:
    """Tokens on a device.

    train, held:  int32 [tokens].
    token_bytes:  float32 [vocabulary], the bytes of each token.
    """

    train: Tensor
    held: Tensor
    token_bytes: Tensor

    @property
    def vocabulary(self) -> int:
        return len(self.token_bytes)

    def drawn(self, count: int, length: int, generator: torch.Generator) -> Tensor:
        """int64 [count, length + 1]: places of the training text, drawn at random."""
        last = len(self.train) - length - 1
        starts = torch.randint(last, (count,), generator=generator)
        places = starts[:, None] + torch.arange(length + 1)
        return self.train[places.to(self.train.device)].long()

    def sequences(self, part: Tensor, length: int, tokens: int) -> Tensor:
        """int64 [sequences, length + 1]: the first tokens of a part, in their order,
        of which each but the first is the target of one prediction."""
        count = min(tokens, len(part) - 1) // length
        if count < 1:
            raise ValueError(
                f"the text has {len(part)} tokens: legal is more than {length}, the "
                "length of a sequence"
            )
        starts = torch.arange(count, device=part.device) * length
        places = starts[:, None] + torch.arange(length + 1, device=part.device)
        return part[places].long()


def load_text(paths: Sequence[pathlib.Path], device: str) -> Text:
    """The text of files of collect_text.py. All that is held out is that of the first.

    Raises ValueError when the files have other tokens.
    """
    files = [np.load(path) for path in paths]
    first = files[0]
    for path, file in zip(paths, files):
        if not np.array_equal(file["tokenizer"], first["tokenizer"]):
            raise ValueError(
                f"{path} has other tokens than {paths[0]}: collect it with --known"
            )
    parts = np.concatenate([file["train"] for file in files]).astype(np.int32)
    return Text(
        torch.from_numpy(parts).to(device),
        torch.from_numpy(first["held"].astype(np.int32)).to(device),
        torch.from_numpy(first["token_bytes"].astype(np.float32)).to(device),
    )


def make_model(
    vocabulary: int, hidden: int, inner: int, layers: int, length: int, seed: int
) -> LlamaForCausalLM:
    """A model in f32 with drawn weights. Embedding and head share theirs.

    hidden, inner:  sizes, multiples of 128; heads have 64 inputs.
    """
    if hidden % 128 or inner % 128:
        raise ValueError(
            f"the sizes are {hidden} and {inner}: legal are multiples of 128, which "
            "panels and groups have"
        )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=-(-vocabulary // 64) * 64,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        max_position_embeddings=length,
        tie_word_embeddings=True,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config).float()


def log_probabilities(model: nn.Module, inputs: Tensor) -> Tensor:
    """f32 [sequences, length, vocabulary] of inputs [sequences, length], in bf16."""
    with torch.autocast(inputs.device.type, torch.bfloat16):
        logits = model(input_ids=inputs).logits
    return F.log_softmax(logits.float(), -1)


def training_loss(model: nn.Module, sequences: Tensor) -> Tensor:
    """The mean loss in nats of a token."""
    with torch.autocast(sequences.device.type, torch.bfloat16):
        logits = model(input_ids=sequences[:, :-1]).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), sequences[:, 1:].flatten())


@torch.no_grad()
def losses(model: nn.Module, sequences: Tensor, batch: int) -> Tensor:
    """float64 [sequences]: the mean loss of each, in nats of a token."""
    model.eval()
    found = []
    for part in sequences.split(batch):
        chances = log_probabilities(model, part[:, :-1])
        found.append(-chances.gather(-1, part[:, 1:, None])[..., 0].double().mean(1))
    return torch.cat(found)


@torch.no_grad()
def compared(
    model: nn.Module, dense: nn.Module, sequences: Tensor, batch: int
) -> Dict[str, Any]:
    """What sequences say of a model beside the dense one.

    losses:    float64 [sequences], nats of a token.
    kl:        the divergence of its predictions from those of the dense one, nats.
    same_top:  the share of tokens of which both find the same one likeliest.
    """
    model.eval()
    dense.eval()
    found: List[Tensor] = []
    divergence = same = 0.0
    for part in sequences.split(batch):
        inputs, targets = part[:, :-1], part[:, 1:, None]
        own, wanted = log_probabilities(model, inputs), log_probabilities(dense, inputs)
        found.append(-own.gather(-1, targets)[..., 0].double().mean(1))
        each = (wanted.exp() * (wanted - own)).sum(-1)
        divergence += float(each.double().sum())
        same += float((own.argmax(-1) == wanted.argmax(-1)).double().sum())
    count = sequences[:, 1:].numel()
    return {
        "losses": torch.cat(found),
        "kl": divergence / count,
        "same_top": same / count,
    }


def bits_per_byte(text: Text, sequences: Tensor, loss: float) -> float:
    """A loss in nats of a token, in bits of each byte that the targets have."""
    size = float(text.token_bytes[sequences[:, 1:]].double().mean())
    return loss / math.log(2) / size


def difference(found: Tensor, wanted: Tensor) -> Dict[str, float]:
    """By how much the mean loss of the same sequences is higher, and the standard error
    of that."""
    change = found - wanted
    error = change.std() / math.sqrt(len(change)) if len(change) > 1 else change.sum()
    return {"above": float(change.mean()), "above_error": float(error)}
