# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prunes a model layer by layer, in the order in which its layers run.

The inputs of each layer are computed with all layers before it already pruned and
fitted, so that it makes up for some of what these have changed.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from .calibration import Batch, Calibration, Group, Source
from .layer import PruneConfig, as_config, prune_linear_
from .replay import Replay
from .report import PruneReport
from .statistics import Statistics

Filter = Callable[[nn.Module, str], bool]


def prune_(
    model: nn.Module,
    config: Any,
    calibration: Union[Calibration, Source, None] = None,
    *,
    filter_fn: Optional[Filter] = None,
    blocks: Optional[str] = None,
    dtype: torch.dtype = torch.float64,
    progress: bool = True,
) -> PruneReport:
    """Prunes the `nn.Linear` layers of a model in place.

    config:       a PruneConfig, an Encoding or its text, for all layers; or a mapping
                  of patterns of names, such as "encoder.*.query", to these or None.
                  The first pattern that matches decides; a layer that none matches,
                  or one of None, stays dense.
    calibration:  batches, or a function that runs the model: see `Calibration`. Not
                  needed for `PruneConfig(..., score="magnitude", fit=False)`.
    filter_fn:    filter_fn(module, name): whether a layer is pruned at all; by default
                  those whose weight no other module has.
    blocks:       the name of an nn.ModuleList whose modules run one after the other,
                  such as "model.layers": a layer is then reached from the block that it
                  is in, and not from the beginning of the model. What one block returns
                  is held for all batches, of the dense model as well.
    dtype:        of the Gram matrices, float64 or float32.
    progress:     whether stderr shows how far things are.

    The weights of the layers obey their patterns afterwards, and can be packed without
    further pruning; `report[name].perm` is the order of a shuffled one. Where a target
    is above 0, the dense weights are held, too, until all is done. Raises EncodingError
    when something does not fit.
    """
    plan = plan_layers(model, config, filter_fn)
    names = [name for name, own in plan.items() if own.needs_calibration]
    if calibration is None and names:
        raise EncodingError(
            f"calibration is None: the fit or the score of {names[0]} needs inputs; "
            "pass batches, or fit=False and score='magnitude'"
        )
    if calibration is None:
        return _without_calibration(model, plan, progress)
    if not isinstance(calibration, Calibration):
        calibration = Calibration(calibration, progress=progress)
    groups = calibration.groups(model, list(plan))
    _check_all_run(plan, groups)
    wants_dense = any(own.fit and own.target > 0 for own in plan.values())
    dense = _DenseWeights(model, list(plan)) if wants_dense else None
    runs = Runs(model, calibration, dense, blocks)
    report = PruneReport()
    with calibration.bar(len(plan), "pruning layers") as bar:
        for group in groups:
            bar.set_postfix_str(group.names[0])
            seen = runs.collect(group, dtype)
            for name in group.names:
                linear, show = model.get_submodule(name), _search_shown(bar, name)
                row = prune_linear_(linear, plan[name], seen, name, progress=show)
                report.layers.append(row)
                bar.update()
    return report


def _search_shown(bar: Any, name: str) -> Callable[[int, int], None]:
    """Shows on a bar how far the search for an order of outputs is."""
    return lambda done, total: bar.set_postfix_str(f"{name}: order {done}/{total}")


def plan_layers(
    model: nn.Module, config: Any, filter_fn: Optional[Filter] = None
) -> Dict[str, PruneConfig]:
    """The layers that are pruned, and how, by name. Raises EncodingError when there are
    none, or a pattern of a mapping matches none."""
    rules: List[Tuple[str, Optional[PruneConfig]]]
    if isinstance(config, Mapping):
        rules = [(key, c if c is None else as_config(c)) for key, c in config.items()]
    else:
        rules = [("*", as_config(config))]
    allowed = filter_fn or _has_own_weight(model)
    plan: Dict[str, PruneConfig] = {}
    used = set()
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear) or not allowed(module, name):
            continue
        for pattern, own in rules:
            if fnmatchcase(name, pattern):
                used.add(pattern)
                if own is not None:
                    plan[name] = own
                break
    unused = [pattern for pattern, _ in rules if pattern not in used]
    if unused or not plan:
        what = f"{unused[0]!r} of config matches no" if unused else "there is no"
        raise EncodingError(
            f"{what} nn.Linear to prune: legal are patterns of names as in "
            "model.named_modules(), of layers that no rule before has taken"
        )
    return plan


def _has_own_weight(model: nn.Module) -> Filter:
    """Whether no other module has the weight of a layer, as a tied embedding has."""
    owners: Dict[int, int] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
    return lambda module, name: owners.get(id(module.weight), 0) <= 1


def _without_calibration(
    model: nn.Module, plan: Mapping[str, PruneConfig], progress: bool
) -> PruneReport:
    report = PruneReport()
    with Calibration([()], progress=progress).bar(len(plan), "pruning layers") as bar:
        for name, own in plan.items():
            bar.set_postfix_str(name)
            linear, show = model.get_submodule(name), _search_shown(bar, name)
            report.layers.append(prune_linear_(linear, own, name=name, progress=show))
            bar.update()
    return report


def _check_all_run(plan: Mapping[str, PruneConfig], groups: List[Group]) -> None:
    ran = {name for group in groups for name in group.names}
    idle = [name for name in plan if name not in ran]
    if idle:
        raise EncodingError(
            f"calibration never runs {idle[0]}"
            + (f" and {len(idle) - 1} more layers" if len(idle) > 1 else "")
            + ": legal are layers that have inputs; add data that reaches them, or map "
            "their names to None"
        )


class _DenseWeights:
    """The weights and biases of layers as they were, to run the dense model again."""

    def __init__(self, model: nn.Module, names: List[str]) -> None:
        self.kept: List[Tuple[nn.Parameter, Tensor]] = []
        for name in names:
            for parameter in model.get_submodule(name).parameters(recurse=False):
                self.kept.append((parameter, parameter.detach().clone()))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Has the model dense as long as the context lasts."""
        pruned = [parameter.data for parameter, _ in self.kept]
        for parameter, dense in self.kept:
            parameter.data = dense
        try:
            yield
        finally:
            for (parameter, _), data in zip(self.kept, pruned):
                parameter.data = data


class Runs:
    """Runs of a model for what the layers of a group are given.

    dense:   where inputs of the dense model are wanted, too, as targets.
    blocks:  as for `prune_`.
    """

    def __init__(
        self,
        model: nn.Module,
        calibration: Calibration,
        dense: Optional[_DenseWeights] = None,
        blocks: Optional[str] = None,
    ) -> None:
        self.model, self.calibration, self.dense = model, calibration, dense
        self.replays: Dict[bool, Replay] = {}
        if blocks is not None and calibration.function is not None:
            raise EncodingError(
                "blocks is given, and calibration is a function: legal are batches"
            )
        if blocks is not None:
            self.replays = {False: Replay(model, blocks), True: Replay(model, blocks)}

    def collect(self, group: Group, dtype: torch.dtype = torch.float64) -> Statistics:
        """What the layers of a group are given on all of the calibration data."""
        name, calibration = group.names[0], self.calibration
        weight = self.model.get_submodule(name).weight
        has_target = self.dense is not None
        seen = Statistics(weight.shape[1], dtype, weight.device, has_target)
        for is_dense, replay in self.replays.items():
            if has_target or not is_dense:
                with self._weights(is_dense):
                    replay.advance(
                        self.model, replay.position(name), calibration.batches
                    )
        for number, part in enumerate(calibration.parts(name)):
            tokens = calibration.tokens_of(part)
            found = self._captured(group, part, number, False)
            if not has_target:
                for x in found:
                    seen.add(x, None, tokens)
                continue
            wanted = self._captured(group, part, number, True)
            if [x.shape for x in found] != [x.shape for x in wanted]:
                raise EncodingError(
                    f"{name} is given other tokens in the pruned model than in the "
                    "dense one: legal is target=0 where the data decide which layers "
                    "run"
                )
            for x, target in zip(found, wanted):
                seen.add(x, target, tokens)
        return seen

    def _weights(self, is_dense: bool) -> Any:
        return self.dense.in_place() if is_dense and self.dense else nullcontext()

    def _captured(
        self, group: Group, part: Batch, number: int, is_dense: bool
    ) -> List[Tensor]:
        """The inputs of the layers of a group on a part of the data."""
        with self._weights(is_dense):
            replay = self.replays.get(is_dense)
            if replay is None or not replay.ready:
                return self.calibration.captured(self.model, group, part)
            with replay.playing(number):
                found = self.calibration.captured(self.model, group, part)
            if replay.checked < replay.ready:
                wanted = self.calibration.captured(self.model, group, part)
                replay.check(found, wanted)
            return found
