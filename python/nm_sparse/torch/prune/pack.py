# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs the layers that `prune_` has pruned, each in its pattern and order."""

from __future__ import annotations

from typing import Dict

from torch import nn

from ...encoding import EncodingError
from ..layers.linear import NMLinear
from .report import PruneReport


def pack_(model: nn.Module, report: PruneReport) -> None:
    """Replaces the layers of a report by `NMLinear` in place, wherever they are in the
    model. Nothing is pruned further, and shuffled weights keep their order.

    Raises EncodingError, and leaves the model as it was, when a weight does not obey
    its pattern any more, or its encoding is `free`, which NMLinear does not have.
    """
    packed: Dict[nn.Module, NMLinear] = {}
    for row in report.layers:
        linear = model.get_submodule(row.name)
        if not row.name or type(linear) is not nn.Linear:
            raise EncodingError(
                f"{row.name or 'the model'} is a {type(linear).__name__}: legal is an "
                "nn.Linear in a model; use NMLinear.from_dense"
            )
        try:
            packed[linear] = NMLinear.from_dense(
                linear, row.encoding, prune=False, perm=row.perm
            )
        except EncodingError as error:
            raise EncodingError(f"{row.name}: {error}") from None
    places = [
        (name, module)
        for name, module in model.named_modules(remove_duplicate=False)
        if module in packed
    ]
    for name, module in places:
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, packed[module])
