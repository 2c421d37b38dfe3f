# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparsify_` with a budget: what was chosen of each layer, as its report."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from torch import nn

from ...encoding import EncodingError
from ...predict import compile_advice
from ..layers.convertible import matrix_shape
from ..layers.linear import NMLinear
from ..layers.linear_state import PackedState
from ..prune.calibration import Calibration, Source
from ..prune.linears import find_linears
from .budget import PATTERNS, sparsify_within_
from .config import NMSparseConfig
from .dense_plan import Times, plan_copies_, with_copy
from .layer_advice import Advice, LayerAdvice
from .report import Prediction, Report, Row, make_report


def sparsify_by_budget(
    model: nn.Module,
    candidates: Any,
    budget: float,
    calibration: Union[Calibration, Source, None],
    **more: Any,
) -> Report:
    """As `sparsify_` with a budget; `more` is for `sparsify_within_`.

    Raises EncodingError, and TypeError for candidates that are no patterns.
    """
    if candidates is None:
        candidates = PATTERNS
    if isinstance(candidates, str):
        candidates = (candidates,)
    if isinstance(candidates, (Mapping, NMSparseConfig)):
        raise TypeError(
            f"config is a {type(candidates).__name__}: legal with a budget are "
            "patterns to choose from, such as ['2:4', '8:16'], or None"
        )
    if calibration is None:
        raise EncodingError(
            "calibration is None: legal with a budget are batches or a function that "
            "runs the model, as errors depend on the inputs of layers"
        )
    before = find_linears(model)
    sizes = {name: _bytes(module) for name, module in before.items()}
    advice, _ = sparsify_within_(model, budget, calibration, candidates, **more)
    rows = _rows(model, before, sizes, advice)
    allowed = {
        model.get_submodule(row.name): row.predictions
        for row in rows
        if row.is_converted and isinstance(model.get_submodule(row.name), NMLinear)
    }
    asked = more.get("predictor") or compile_advice, more.get("chip")
    plan_copies_(model, allowed, Times(*asked, more.get("dtype")))
    rows = [with_copy(row, model.get_submodule(row.name)) for row in rows]
    return make_report(model, rows)


def _bytes(module: nn.Linear) -> int:
    return module.weight.numel() * module.weight.element_size()


def _rows(
    model: nn.Module,
    before: Mapping[str, nn.Linear],
    sizes: Mapping[str, int],
    advice: Advice,
) -> List[Row]:
    known: Dict[str, LayerAdvice] = {layer.name: layer for layer in advice.layers}
    rows = []
    for name, module in before.items():
        layer = known.get(name)
        now = model.get_submodule(name)
        packed = now.weight.nbytes if isinstance(now, PackedState) else None
        reason = advice.left_dense.get(name, "")
        if packed is None and layer is not None and not reason:
            reason = _reason(layer, advice)
        rows.append(
            Row(
                name=name,
                shape=matrix_shape(module),
                encoding=_text(now) if isinstance(now, PackedState) else None,
                is_converted=packed is not None,
                reason=reason,
                kept_magnitude=None,
                dense_bytes=sizes[name],
                packed_bytes=packed,
                predictions=_predictions(layer, advice.tokens),
            )
        )
    return rows


def _text(layer: PackedState) -> str:
    return str(layer.encoding).replace(", dim = 1", "")


def _reason(layer: LayerAdvice, advice: Advice) -> str:
    """Why a layer that was looked at is dense."""
    errors = [one.error for one in layer.options if one.error is not None]
    if errors and min(errors) > (advice.budget or 0):
        return f"the least error of a pattern is {min(errors):.3f}"
    return "no pattern within the budget is predicted to be faster"


def _predictions(
    layer: Optional[LayerAdvice], tokens: Sequence[int]
) -> Sequence[Prediction]:
    if layer is None or layer.chosen is None:
        return ()
    times = layer.chosen.times
    return tuple(Prediction(n, layer.dense[n], times[n]) for n in tokens if n in times)
