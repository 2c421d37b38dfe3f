# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which layers `prune_` prunes, found before the first of them is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from torch import nn

from ...encoding import EncodingError
from ..layers.convertible import geometry_of
from .calibration import Calibration, Group
from .choices import Filter, Patterns, choose_layers
from .layer import PruneConfig, as_config
from .obstacles import outside
from .readers import ReadWatch

_SHOWN = 3  # reasons in an error


@dataclass
class Plan:
    """The layers that are pruned, and those that are not.

    layers:      how each is pruned, by name.
    left_dense:  why each other one stays dense, by name.
    """

    layers: Dict[str, PruneConfig]
    left_dense: Dict[str, str]

    def check(self) -> None:
        """Raises EncodingError when there is no layer to prune."""
        if self.layers:
            return
        reasons = [f"{name}: {reason}" for name, reason in self.left_dense.items()]
        shown = "; ".join(reasons[:_SHOWN]) or "it has no nn.Linear"
        more = len(reasons) - _SHOWN
        raise EncodingError(
            f"config leaves no nn.Linear of the model to prune: {shown}"
            + (f"; and {more} more" if more > 0 else "")
            + ". Legal is a config for a layer that has a weight of its own; "
            "keep_larger=True of PruneConfig prunes small ones, too"
        )


def plan_layers(
    model: nn.Module,
    config: Any,
    filter_fn: Optional[Filter] = None,
    must_fit: bool = True,
) -> Plan:
    """The layers of a model that are pruned, and how.

    config, filter_fn:  as for `prune_`.
    must_fit:           as for `choose_layers`.

    Raises EncodingError when there are none, or a pattern of a mapping matches none.
    """
    rules: Dict[str, Optional[PruneConfig]] = {"*": None}
    if isinstance(config, Mapping):
        rules = {k: one if one is None else as_config(one) for k, one in config.items()}
    else:
        rules["*"] = as_config(config)
    patterns = Patterns(rules)
    choices = choose_layers(model, patterns, filter_fn, must_fit)
    if choices and patterns.unused:
        raise EncodingError(
            f"{patterns.unused[0]!r} of config matches no nn.Linear: legal are "
            "patterns of names as in model.named_modules(), of layers that no rule "
            "before has taken"
        )
    plan = Plan(
        {one.name: one.config for one in choices if not one.reason},
        {one.name: one.reason for one in choices if one.reason},
    )
    plan.check()
    return plan


def find_groups(model: nn.Module, plan: Plan, calibration: Calibration) -> List[Group]:
    """The layers of a plan in the order in which they run, those of one input together.

    Layers whose weight something else reads in these runs leave the plan. Raises
    EncodingError when no layer stays in it, or one is neither called nor read.
    """
    watch = ReadWatch({name: model.get_submodule(name) for name in plan.layers})
    with watch.watching():
        groups = calibration.groups(model, list(plan.layers))
    for name, function in watch.found.items():
        del plan.layers[name]
        plan.left_dense[name] = outside(function)
    plan.check()
    for group in groups:
        group.names = [name for name in group.names if name in plan.layers]
    ran = {name for group in groups for name in group.names}
    idle = [name for name in plan.layers if name not in ran]
    if idle:
        raise EncodingError(
            f"calibration never runs {idle[0]}"
            + (f" and {len(idle) - 1} more layers" if len(idle) > 1 else "")
            + ": legal are layers that have inputs; add data that reaches them, or map "
            "their names to None"
        )
    return [part for group in groups for part in _alike(model, group)]


def _alike(model: nn.Module, group: Group) -> List[Group]:
    """The layers of a group by what their weights multiply: kernels of several sizes
    read other patches of one image."""
    parts: Dict[Any, Group] = {}
    for name in group.names:
        geometry = geometry_of(model.get_submodule(name))
        parts.setdefault(geometry, Group([], group.calls)).names.append(name)
    return list(parts.values())
