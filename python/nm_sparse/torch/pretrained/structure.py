# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which weights of a checkpoint are those of linear layers: its model says so.

The model is built on the meta device, where it takes no memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

import torch
import transformers
from torch import nn

from ...files.checkpoint import Checkpoint
from ...files.convert import Structure
from ...files.convert.actions import WEIGHT
from ...files.convert.names import TIED
from ..layers.convertible import conv1d_class, matrix_shape
from .mapping import Names


def model_structure(checkpoint: Checkpoint) -> Optional[Structure]:
    """That of a checkpoint of transformers; None where config.json names no model that
    transformers knows itself.

    Code that comes with a checkpoint is not run.
    """
    model = empty_model(checkpoint)
    if model is None:
        return None
    names = Names(model)
    linear: Dict[str, Tuple[int, int]] = {}
    others: Dict[str, str] = {}
    packed: Set[nn.Module] = set()
    shared = _shared(model)
    stored = {n: False for n in checkpoint.weights}
    for name in checkpoint.packed:
        stored[name if name.endswith(WEIGHT) else name + WEIGHT] = True
    for name, is_packed in stored.items():
        found = _layer(model, names, shared, name)
        if isinstance(found, str):
            others[name] = found
            # `sparsify_` packs more layers, whose weights may stay packed.
            found = _packable(model, names, shared, name) if is_packed else None
        if found is not None:
            linear[name] = tuple(matrix_shape(found))
            packed.add(found)
    left = (n for n in sorted(names.linear) if model.get_submodule(n) not in packed)
    return Structure(linear, others, is_known=True, left=tuple(left))


def empty_model(checkpoint: Checkpoint) -> Any:
    """The model of a checkpoint without its weights; None where it is not known."""
    kind = checkpoint.config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        return None
    folder = checkpoint.path if checkpoint.path.is_dir() else checkpoint.path.parent
    config = transformers.AutoConfig.from_pretrained(Path(folder))
    config.__dict__.pop("quantization_config", None)
    classes = [
        getattr(transformers, name, None)
        for name in checkpoint.config.get("architectures") or ()
    ]
    with torch.device("meta"):
        if classes and classes[0] is not None:
            return classes[0](config)
        return transformers.AutoModel.from_config(config)


def _layer(
    model: Any, names: Names, shared: Dict[str, str], name: str
) -> Any:  # an nn.Linear, or why there is none
    try:
        layer = names.layer(name) if name.endswith(WEIGHT) else None
    except ValueError as error:
        return str(error)
    if layer is None:
        return "the model has no layer of which it is the weight"
    if layer in shared:
        return shared[layer]
    module = model.get_submodule(layer)
    if isinstance(module, nn.Embedding):
        return "it is an embedding"
    if conv1d_class(module) is not None:
        return "its layer is a Conv1D, not an nn.Linear, which only sparsify_ packs"
    if not isinstance(module, nn.Linear):
        return f"its layer is a {type(module).__name__}, not an nn.Linear"
    if type(module).forward is not nn.Linear.forward:
        return f"its layer is a {type(module).__name__} with a forward of its own"
    return module


def _packable(
    model: Any, names: Names, shared: Dict[str, str], name: str
) -> Optional[nn.Module]:
    """The layer whose weight this is, if a packed layer could replace it."""
    try:
        layer = names.layer(name)
    except ValueError:
        return None
    if layer not in names.linear or layer in shared:
        return None
    module: nn.Module = model.get_submodule(layer)
    return module


def _shared(model: Any) -> Dict[str, str]:
    """Why layers that share their weights with others cannot be packed, by name."""
    owners: Dict[int, list] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    found = {}
    for group in owners.values():
        for name in group if len(group) > 1 else ():
            found[name.rpartition(".")[0]] = f"it shares its weight with {group}"
    for pair in getattr(model, "all_tied_weights_keys", {}).items():
        for name in pair:
            found[name.rpartition(".")[0]] = TIED
    return found
