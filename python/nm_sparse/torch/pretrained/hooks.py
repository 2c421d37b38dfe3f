# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of accelerate, which moves inputs to the device of each layer."""

from __future__ import annotations

from typing import Any, List

from torch import nn


def move_hooks(old: nn.Module, new: nn.Module) -> None:
    """Gives a layer the hooks of the one whose place it takes."""
    hook: Any = getattr(old, "_hf_hook", None)
    if hook is None:
        return
    from accelerate.hooks import add_hook_to_module

    # A hook moves the tensors of its layer when it is added. Here they are where they
    # belong, and are no plain ones, so it is told of no device meanwhile.
    hooks: List[Any] = list(getattr(hook, "hooks", [hook]))
    devices = [getattr(one, "execution_device", None) for one in hooks]
    for one in hooks:
        one.execution_device = None
    try:
        add_hook_to_module(new, hook)
    finally:
        for one, device in zip(hooks, devices):
            one.execution_device = device
