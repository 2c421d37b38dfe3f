# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a model that are dense and can become sparse, and how others take
their places."""

from __future__ import annotations

from typing import Dict, Mapping

from torch import nn

from ..layers.convertible import is_convertible


def is_dense_linear(module: nn.Module) -> bool:
    """Whether it is an `nn.Linear`, a `Conv1D` of transformers or an `nn.Conv2d`, and
    none that is packed already."""
    return is_convertible(module)


def find_linears(model: nn.Module) -> Dict[str, nn.Module]:
    """All such layers in the order of the model, each by its first name."""
    return {
        name: module
        for name, module in model.named_modules()
        if is_dense_linear(module)
    }


def replace_modules(model: nn.Module, others: Mapping[nn.Module, nn.Module]) -> None:
    """Puts other modules in the places of these, wherever they are in the model."""
    places = list(model.named_modules(remove_duplicate=False))
    for name, module in places:
        if module in others and name:
            before, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(before), attribute, others[module])
