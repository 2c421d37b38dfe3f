# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which layers of a model are pruned or packed, how, and why the others are not."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from torch import nn

from ..layers.convertible import matrix_shape
from .linears import find_linears
from .obstacles import Surroundings, misfit, obstacle

Filter = Callable[[nn.Module, str], bool]


class Patterns:
    """Configs by the names of layers. The first pattern that matches a name decides,
    so that exceptions come first: {"lm_head": None, "*.mlp.*": a, "*": b}.

    Patterns are those of `fnmatch`, case-sensitive; None leaves the layer dense.
    """

    def __init__(self, configs: Mapping[str, Any]) -> None:
        self.configs: Dict[str, Any] = dict(configs)
        self.unused = list(self.configs)

    def find(self, name: str) -> Tuple[Optional[str], Any]:
        """The pattern that decides about a name, and its config; (None, None) when no
        pattern matches."""
        for pattern, config in self.configs.items():
            if fnmatch.fnmatchcase(name, pattern):
                if pattern in self.unused:
                    self.unused.remove(pattern)
                return pattern, config
        return None, None


@dataclass
class Choice:
    """What is to become of a dense linear layer.

    name:    in the model; of a layer that has several, the first.
    config:  of the first pattern that matches the name, a PruneConfig or an
             NMSparseConfig; None where none matches.
    reason:  why the layer stays dense; "" where it does not.
    """

    name: str
    layer: nn.Module
    config: Any
    reason: str


def choose_layers(
    model: nn.Module,
    patterns: Patterns,
    filter_fn: Optional[Filter] = None,
    must_fit: bool = True,
) -> List[Choice]:
    """All dense linear layers of a model, in its order. Changes nothing.

    filter_fn:  called with each layer that has a config, and its name: False leaves it
                dense.
    must_fit:   whether a layer stays dense, too, for which its pattern is of no use.
    """
    around = Surroundings(model)
    found = []
    for name, layer in find_linears(model).items():
        pattern, config = patterns.find(name)
        if pattern is None:
            reason = "no pattern of the config matches its name"
        elif config is None:
            reason = f"the config leaves {pattern!r} dense"
        elif filter_fn is not None and not filter_fn(layer, name):
            reason = "filter_fn leaves it dense"
        else:
            reason = obstacle(layer, around)
            if must_fit and not reason:
                reason = unfit(layer, config)
        found.append(Choice(name, layer, config, reason))
    return found


def unfit(layer: nn.Module, config: Any) -> str:
    """Why the pattern of a config is of no use for a layer; "" where it is."""
    dtype, e = getattr(config, "dtype", None) or layer.weight.dtype, config.pattern
    if isinstance(layer, nn.Conv2d) and layer.in_channels < e.m * e.block[0]:
        window = e.m * e.block[0]
        return f"its {layer.in_channels} channels are less than a window of {window}"
    is_linear = not isinstance(layer, nn.Conv2d)
    weights = getattr(config, "weights", None) if is_linear else None
    return misfit(matrix_shape(layer), dtype, e, config.keep_larger, weights)
