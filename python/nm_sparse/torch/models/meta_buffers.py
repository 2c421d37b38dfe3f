# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers that no checkpoint has, such as frequencies of rotary embeddings, of models
that were made on the meta device."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Set

import torch
from torch import nn

_MODELS = "transformers.modeling_utils"
_MARK = "_is_hf_initialized"


def meta_buffers(model: nn.Module) -> List[str]:
    """Names of buffers on the meta device that are in no `state_dict`."""
    found = []
    for prefix, module in model.named_modules():
        for name in module._non_persistent_buffers_set:
            buffer = module._buffers.get(name)
            if buffer is not None and buffer.is_meta:
                found.append(f"{prefix}.{name}" if prefix else name)
    return found


def computable(model: nn.Module) -> Dict[str, Any]:
    """The models of transformers in a model, outermost alone, by name: they compute
    such buffers again."""
    models = sys.modules.get(_MODELS)
    found: Dict[str, Any] = {}
    for name, module in model.named_modules():
        is_inside = any(name.startswith(f"{outer}.") or not outer for outer in found)
        if models and isinstance(module, models.PreTrainedModel) and not is_inside:
            found[name] = module
    return found


def unknown_buffers(model: nn.Module) -> List[str]:
    """Those of `meta_buffers` that nothing can compute."""
    known = computable(model)
    return [
        name
        for name in meta_buffers(model)
        if not any(not outer or name.startswith(f"{outer}.") for outer in known)
    ]


def fill_buffers(model: nn.Module) -> None:
    """Computes them where a model of transformers can; parameters stay."""
    for module in computable(model).values():
        names = meta_buffers(module)
        for name in names:
            owner, _, attribute = name.rpartition(".")
            parent = module.get_submodule(owner)
            buffer = parent._buffers[attribute]
            parent._buffers[attribute] = torch.empty_like(buffer, device="cpu")
        if names:
            _initialize(module, set(names))


def _initialize(model: Any, names: Set[str]) -> None:
    """Has a model initialize these buffers, and nothing else."""
    marked = []
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        # Transformers leaves alone what has this mark.
        if name not in names and not hasattr(tensor, _MARK):
            setattr(tensor, _MARK, True)
            marked.append(tensor)
    for module in model.modules():
        module.__dict__.pop(_MARK, None)
    model.initialize_weights()
    for tensor in marked:
        delattr(tensor, _MARK)
