# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prunes a model layer by layer, in the order in which its layers run.

The inputs of each layer are computed with all layers before it already pruned and
fitted, so that it makes up for some of what these have changed.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Union

import torch
from torch import nn

from ...encoding import EncodingError
from .calibration import Calibration, Source
from .choices import Filter
from .layer import prune_linear_
from .model_size import measure
from .plan import Plan, find_groups, plan_layers
from .report import LayerReport, PruneReport
from .runs import AUTO, Originals, Runs
from .statistics import Statistics


def prune_(
    model: nn.Module,
    config: Any,
    calibration: Union[Calibration, Source, None] = None,
    *,
    filter_fn: Optional[Filter] = None,
    blocks: Optional[str] = AUTO,
    dtype: torch.dtype = torch.float64,
    progress: bool = True,
) -> PruneReport:
    """Prunes the linear layers and convolutions of a model in place.

    config:       a PruneConfig, an Encoding or its text, for all layers; or a mapping
                  of patterns of names, such as "encoder.*.query", to these or None.
                  The first pattern that matches decides; a layer that none matches,
                  or one of None, stays dense.
    calibration:  batches, or a function that runs the model: see `Calibration`. Not
                  needed for `PruneConfig(..., score="magnitude", fit=False)`.
    filter_fn:    filter_fn(module, name): False leaves a layer dense.
    blocks:       the name of an nn.ModuleList whose modules run one after the other,
                  such as "model.layers": a layer is then reached from the block that it
                  is in, and not from the beginning of the model. What one block returns
                  is held for all batches, of the dense model as well. "auto" finds the
                  list, and does without where its modules are no chain; None does
                  without it.
    dtype:        of the Gram matrices, float64 or float32.
    progress:     whether stderr shows how far things are.

    Layers stay dense, with a reason in the report, that `sparsify_` and `pack_` leave
    so, too: those whose weight is computed, shared, quantized, or read by others
    (`weight @ x`), as attention of torch does, and those that are smaller than a window
    and panel of their pattern, or take no less memory when they are packed.

    The weights of the others obey their patterns afterwards, and can be packed without
    further pruning; `report[name].perm` is the order of a shuffled one. The dense
    weights are held until all is done. Raises EncodingError when something does not
    fit; after any error the model is as it was.
    """
    plan = plan_layers(model, config, filter_fn)
    names = [name for name, own in plan.layers.items() if own.needs_calibration]
    if calibration is None and names:
        raise EncodingError(
            f"calibration is None: the fit or the score of {names[0]} needs inputs; "
            "pass batches, or fit=False and score='magnitude'"
        )
    if calibration is not None and not isinstance(calibration, Calibration):
        calibration = Calibration(calibration, progress=progress)
    wants_dense = any(own.fit and own.target > 0 for own in plan.layers.values())
    originals = Originals(on_cpu=calibration is None or not wants_dense)
    run = _Pruning(model, plan, originals)
    with originals.restored_on_error():
        if calibration is None:
            shown = Calibration([()], progress=progress)
            with shown.bar(len(plan.layers), "pruning layers") as bar:
                run.prune_(list(plan.layers), None, bar)
        else:
            groups = find_groups(model, plan, calibration)
            if wants_dense:
                for name in plan.layers:
                    originals.keep(model.get_submodule(name))
            dense = originals if wants_dense else None
            runs = Runs(model, calibration, list(plan.layers), dense, blocks)
            with calibration.bar(len(plan.layers), "pruning layers") as bar:
                for group in groups:
                    bar.set_postfix_str(group.names[0])
                    run.prune_(group.names, runs.collect(group, dtype), bar)
    pruned = [model.get_submodule(row.name).weight for row in run.rows]
    sizes = [weight.numel() * weight.element_size() for weight in pruned]
    sparse = dict(zip((row.name for row in run.rows), sizes))
    size = measure(model, sparse, plan.left_dense)
    return PruneReport(run.rows, plan.left_dense, size)


class _Pruning:
    """Layers that are pruned one after the other, and what became of them."""

    def __init__(self, model: nn.Module, plan: Plan, originals: Originals) -> None:
        self.model, self.plan, self.originals = model, plan, originals
        self.rows: List[LayerReport] = []

    def prune_(self, names: List[str], seen: Optional[Statistics], bar: Any) -> None:
        """Prunes layers that have the same inputs."""
        for name in names:
            bar.set_postfix_str(name)
            layer: Any = self.model.get_submodule(name)
            self.originals.keep(layer)
            config, show = self.plan.layers[name], _search_shown(bar, name)
            try:
                row = prune_linear_(layer, config, seen, name, progress=show)
            except EncodingError as error:
                raise EncodingError(f"{name}: {error}") from None
            self.rows.append(row)
            bar.update()


def _search_shown(bar: Any, name: str) -> Callable[[int, int], None]:
    """Shows on a bar how far the search for an order of outputs is."""
    return lambda done, total: bar.set_postfix_str(f"{name}: order {done}/{total}")
