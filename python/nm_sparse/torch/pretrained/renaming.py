# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of tensors in checkpoints of transformers, as its models have them."""

from __future__ import annotations

import sys
from typing import Callable

from torch import nn

_MODELS = "transformers.modeling_utils"


def renamer(model: nn.Module) -> Callable[[str], str]:
    """A function from names in a checkpoint to those in a model. It returns names as
    they are for other models than transformers', and where one tensor becomes a part of
    another."""
    models = sys.modules.get(_MODELS)
    if models is None or not isinstance(model, models.PreTrainedModel):
        return lambda name: name
    from .mapping import Names

    names = Names(model)

    def rename(name: str) -> str:
        try:
            return names.parameter(name)
        except ValueError:
            return name

    return rename
