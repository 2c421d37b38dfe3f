# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which weights are those of linear layers, by their names alone. A model that can be
asked knows better."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Tuple

from ..checkpoint import Checkpoint
from .actions import WEIGHT, Structure

EMBEDDING = "its name is that of an embedding"
TIED = "it is the head, which shares its weight with the embedding"
_EMBEDDINGS = re.compile(r"embed|(^|\.)(wte|wpe|shared)(\.|$)", re.IGNORECASE)
_HEADS = re.compile(r"(^|\.)(lm_head|embed_out)\.weight$")


def is_embedding(name: str) -> bool:
    """Whether a tensor is named like the weight of an embedding."""
    return bool(_EMBEDDINGS.search(name)) and not _HEADS.search(name)


def is_tied(config: Mapping[str, Any]) -> bool:
    """Whether config.json says that the head has the weight of the embedding."""
    places = (config, config.get("text_config"))
    return any(
        isinstance(one, Mapping) and one.get("tie_word_embeddings") is True
        for one in places
    )


def why_dense(name: str, config: Mapping[str, Any]) -> str:
    """Why a weight should stay dense, by its name; "" where nothing says so."""
    if is_embedding(name):
        return EMBEDDING
    return TIED if _HEADS.search(name) and is_tied(config) else ""


def structure_by_names(checkpoint: Checkpoint) -> Structure:
    """All matrices `LAYER.weight`, but for embeddings and tied heads."""
    linear: Dict[str, Tuple[int, int]] = {}
    others: Dict[str, str] = {}
    for name, weight in checkpoint.weights.items():
        reason = why_dense(name, checkpoint.config)
        if not reason and not name.endswith(WEIGHT):
            reason = f"its name does not end in {WEIGHT}"
        if reason:
            others[name] = reason
        else:
            linear[name] = weight.outputs, weight.inputs
    return Structure(linear, others, is_known=False)
